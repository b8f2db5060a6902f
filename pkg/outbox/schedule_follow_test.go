package outbox

import (
	"testing"
	"time"
)

func TestFollowAfter(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name    string
		follow  time.Duration
		goingOn time.Duration
		want    time.Duration
	}{
		{"what was accepted now is asked after soon", 100 * time.Millisecond, -1, 100 * time.Millisecond},
		{"at the same pace while it is young", 100 * time.Millisecond, 400 * time.Millisecond, 100 * time.Millisecond},
		{"less often the longer it goes on", 100 * time.Millisecond, time.Minute, 7500 * time.Millisecond},
		{"but never as seldom as nobody would notice its end", 100 * time.Millisecond, 24 * time.Hour, longestWait},
		{"a target that nothing is said of is asked at one pace", 0, 24 * time.Hour, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := Effect{}
			if c.goingOn >= 0 {
				at := now.Add(-c.goingOn)
				e.AcceptedAt = &at
			}
			if got := (Target{AskEvery: time.Second, FollowEvery: c.follow}).followAfter(e, now); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
