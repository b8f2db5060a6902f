package outbox

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Finding is what a call to a target has shown.
type Finding string

const (
	// Confirmed: it happened. Settles under any fence.
	Confirmed Finding = "confirmed"

	// Verdict: the target refused it and keeps that under our effect key, so every copy of the send gets the same. Settles
	// under any fence. Only from a target with the ability key.
	Verdict Finding = "verdict"

	// Refused: this send had no effect, and another would be refused too (a rule, missing rights).
	Refused Finding = "refused"

	// NotSent: this send had no effect and another may have one: no connection, 429, a token below the floor.
	NotSent Finding = "not_sent"

	// Ambiguous: a time-out, a reset after the first byte, a 5xx, an answer that can't be read.
	Ambiguous Finding = "ambiguous"

	// Accepted: it goes on at the target, which must be asked how it ends.
	Accepted Finding = "accepted"

	// Different: it shows that something happened, and that it is not what was asked for: another amount, another artifact. Only a
	// person can say what that means.
	Different Finding = "different"

	// Stopped: it had begun, was broken off, and what was there before is there again. Settles under any fence.
	Stopped Finding = "stopped"

	// Reused: it has answered another command under our effect key, so what it shows under that may be somebody else's. Nothing that
	// is found by the key settles the effect any more; only a person can say what happened.
	Reused Finding = "key_reused"

	// Closed: from now on no earlier send can take effect, and none has. Only from Close.
	Closed Finding = "closed"

	// NotFound: the target knows nothing of it yet. Only from Lookup.
	NotFound Finding = "not_found"
)

// Evidence is what a provider has observed: an answer, a connection refused before the first byte, a reset after it. It is never
// made from the text of an error.
type Evidence struct {
	Finding    Finding
	Reference  string        // the target's name for the effect, with Confirmed and Accepted
	More       []string      // names of further effects under the same effect key, of which there must be none
	Says       string        // for people, in a review or an attempt: no secrets, no bodies
	RetryAfter time.Duration // what the target asked for: no call before that
	Shows      string        // with Different: what is there instead, for the service's own settling, should a person say that it counts

	// Of a target whose effects hold locks, with any finding.
	Floor int64  // the lowest token that the target still takes; 0: it did not say
	Runs  string // what is there now; empty: it did not say
}

const (
	// maxReference is what names of objects have elsewhere too, in characters. A person may give one of the same length.
	maxReference = 255

	// maxSays holds any sentence of a provider, in bytes.
	maxSays = 500

	// maxRuns holds any name of an artifact, in bytes.
	maxRuns = 1024
)

// kept is evidence as rows can keep it. What was observed comes from outside, and what a database refuses would never settle: nobody
// would ever hear of the effect. So a name that can't be kept is one that can't be read, and texts are cut.
func (ev Evidence) kept() Evidence {
	if !isName(ev.Reference) {
		ev.Finding, ev.Reference, ev.More = Ambiguous, "", nil
		ev.Says = strings.TrimSpace(ev.Says + ", with a reference that can't be kept")
	}
	if !isName(ev.Shows) {
		ev.Shows = "" // a person is asked all the same
	}
	ev.Says, ev.Runs = asText(ev.Says, maxSays), asText(ev.Runs, maxRuns)
	return ev
}

// asText is what can be kept of a text, in so many bytes.
func asText(text string, most int) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\ufffd"), "\ufffd")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// isName reports whether a target's name for an effect can be kept, or there is none.
func isName(reference string) bool {
	return utf8.ValidString(reference) && utf8.RuneCountInString(reference) <= maxReference && !strings.Contains(reference, "\x00")
}
