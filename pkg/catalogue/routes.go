package catalogue

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Exempt are the routes that write, or look as if they did, without being an operation of a client: fingerprints claim
// nothing, and hooks are calls of the outside world for which the service makes the key.
var Exempt = []string{"POST /v1/fingerprints", "POST /v1/hooks/*"}

// CheckRoutes returns an error that names every route which changes something and is in no entry, or nil. A service calls
// it before it listens.
//
// Routes are all routes of the service, as "METHOD /path"; operations says which type each of its writes is; exempt lists
// routes that need none, where a final * stands for any rest. An operation for a route that the service does not have is
// an error too: the promise would be about nothing.
func CheckRoutes(routes []string, operations map[string]string, exempt []string) error {
	var errs []error
	for _, route := range slices.Sorted(slices.Values(routes)) {
		operation, declared := operations[route]
		_, known := Lookup(operation)
		switch {
		case declared && !known:
			errs = append(errs, fmt.Errorf("%s is declared as %q, which is in no catalogue entry", route, operation))
		case !declared && writes(route) && !isExempt(route, exempt):
			errs = append(errs, fmt.Errorf("%s writes and has no operation type", route))
		}
	}
	for _, route := range slices.Sorted(maps.Keys(operations)) {
		if !slices.Contains(routes, route) {
			errs = append(errs, fmt.Errorf("%s has an operation type and is no route", route))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("check routes against the catalogue: %w", errors.Join(errs...))
}

func writes(route string) bool {
	method, _, _ := strings.Cut(route, " ")
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE": // safe methods, RFC 9110 section 9.2.1
		return false
	}
	return true
}

func isExempt(route string, exempt []string) bool {
	return slices.ContainsFunc(exempt, func(pattern string) bool {
		beginning, open := strings.CutSuffix(pattern, "*")
		return route == pattern || open && strings.HasPrefix(route, beginning)
	})
}
