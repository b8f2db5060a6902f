package idemhttp

import "time"

// timeFormat is RFC 3339 with all six digits of the microseconds, so that the text of one time is the same everywhere.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// Time is a time as every resource spells it: UTC, microseconds, RFC 3339.
type Time time.Time

// MarshalText makes Time print the same in JSON and in headers.
func (t Time) MarshalText() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, timeFormat), nil
}

// String is the text.
func (t Time) String() string { return time.Time(t).UTC().Format(timeFormat) }
