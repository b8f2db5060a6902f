package outbox

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// RetryAfter reads both forms of the header Retry-After (RFC 9110, section 10.2.3), a number of seconds and a date, for
// Evidence.RetryAfter; 0: it asks for nothing. More than is heeded is as good as that.
func RetryAfter(value string, now time.Time) time.Duration {
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, at.Sub(now)), longestAsked)
	}
	seconds, err := strconv.ParseUint(value, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range it is the largest
		return 0
	}
	return time.Duration(min(seconds, uint64(longestAsked/time.Second))) * time.Second
}
