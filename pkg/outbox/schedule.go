package outbox

import (
	"cmp"
	"math/rand/v2"
	"time"
)

const (
	// firstWait is short: most refusals of a connection are a restart.
	firstWait = 200 * time.Millisecond

	// longestWait keeps an effect whose fate is unknown within half a minute of its target's recovery.
	longestWait = 30 * time.Second

	// longestAsked bounds what a target may ask for: longer than any rate limit lasts, and a slip in its answer parks no effect
	// for years.
	longestAsked = time.Hour
)

// followed is the part of the time that something has gone on for at its target after which that is asked after once more: whatever
// it takes, its end is known an eighth later, after some twenty questions in the first minutes.
const followed = 8

// followAfter is how long to wait before asking after what the target has accepted.
func (t Target) followAfter(e Effect, now time.Time) time.Duration {
	switch {
	case t.FollowEvery == 0:
		return t.AskEvery
	case e.AcceptedAt == nil:
		return t.FollowEvery
	}
	return max(t.FollowEvery, min(now.Sub(*e.AcceptedAt)/followed, longestWait)).Truncate(time.Microsecond)
}

// whileAPersonIsAsked is the pause between looks that have found nothing for long. A person has a working day to decide, and an index that
// lags, or a request that was long on its way, may still show before that; more often would be load for nothing.
const whileAPersonIsAsked = 5 * time.Minute

// pause is what the target asked for, within reason.
func (ev Evidence) pause() time.Duration { return max(0, min(ev.RetryAfter, longestAsked)) }

// notBefore is at, or earliest if that is later.
func notBefore(at, earliest time.Time) time.Time {
	if at.Before(earliest) {
		return earliest
	}
	return at
}

// backoff is how long to wait after the n-th try: doubling up to longest, half of it at random (Brooker, "Exponential Backoff and Jitter":
// equal jitter), so that effects that failed together do not come back together. What the target asked for comes on top.
func backoff(n int, longest, asked time.Duration) time.Duration {
	limit := min(longest, firstWait<<min(max(n-1, 0), 20))                                              // 200 ms doubled twenty times are two days
	return (Evidence{RetryAfter: asked}.pause() + limit/2 + rand.N(limit/2)).Truncate(time.Microsecond) // what databases keep
}

// resendAt is when an effect may be sent again of which asking has found nothing: the first time at once, since one answer is lost now
// and then; later with a growing pause, so that neither a target in trouble nor somebody who keeps asking uses up all sends at once.
func (t Target) resendAt(e Effect, now time.Time) time.Time {
	if e.Attempts <= 1 {
		return now
	}
	return now.Add(backoff(e.Attempts-1, t.betweenSends(), 0))
}

// betweenSends is the longest pause between two sends.
func (t Target) betweenSends() time.Duration { return cmp.Or(t.LongestWait, longestWait) }
