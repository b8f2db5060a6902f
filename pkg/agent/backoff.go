package agent

import (
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// firstWait is half of what most restarts take.
	firstWait = 500 * time.Millisecond

	// longestOwnWait is how long the agent waits where nobody has asked it to.
	longestOwnWait = 30 * time.Second
)

// backoff is how long to wait after the nth try: anything up to a limit that doubles (Brooker, "Exponential Backoff and Jitter": full jitter), so
// that agents that have failed together do not come back together.
func backoff(n int) time.Duration {
	limit := longestOwnWait
	if n <= 6 { // 500 ms doubled five times is 16 s
		limit = min(limit, firstWait<<max(n-1, 0))
	}
	return rand.N(limit + 1)
}

// retryAfter reads both forms of the header Retry-After (RFC 9110, section 10.2.3), in whole seconds: a number, or a date, which is compared with the
// answer's own Date where there is one, since the two clocks may differ. What is no such value, or in the past, asks for nothing; what is too large for a number is
// still longer than any budget.
func retryAfter(h http.Header, now time.Time) int64 {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if at, err := http.ParseTime(value); err == nil {
		if date, err := http.ParseTime(h.Get("Date")); err == nil {
			now = date
		}
		return max(0, int64(math.Ceil(at.Sub(now).Seconds())))
	}
	seconds, err := strconv.ParseUint(value, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range it is the largest
		return 0
	}
	return int64(min(seconds, uint64(longestAsked)))
}

// longestAsked is as much as fits in a time.Duration, in seconds.
const longestAsked = int64(math.MaxInt64 / time.Second)
