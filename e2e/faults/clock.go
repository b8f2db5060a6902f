package faults

import (
	"fmt"
	"path/filepath"
	"time"
)

// ClockBehind is the environment in which a program that uses the system's C library finds the time to be this much earlier. It takes libfaketime
// (package faketime).
func ClockBehind(by time.Duration) ([]string, error) {
	for _, pattern := range []string{
		"/usr/lib/*/faketime/libfaketime.so.1", // Debian
		"/usr/lib*/faketime/libfaketime.so.1",
		"/usr/local/lib/faketime/libfaketime.so.1",
	} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // the pattern is well-formed
			return []string{
				"LD_PRELOAD=" + found[0],
				fmt.Sprintf("FAKETIME=-%ds", int(by.Seconds())),
				"FAKETIME_DONT_FAKE_MONOTONIC=1", // what waits for a duration waits for it
			}, nil
		}
	}
	return nil, fmt.Errorf("no libfaketime here, so no clock can be put back; on Debian or Ubuntu: apt-get install faketime")
}
