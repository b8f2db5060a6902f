package agent

import (
	"fmt"
	"net/url"
	"strings"
)

// Target is a service, and what it can do for a caller that is not sure.
type Target struct {
	URL     string // http://127.0.0.1:8081, with a path perhaps, below which the commands' paths are
	Ability Ability
}

// NewTarget checks where a target is, and what it is said to be able to do.
func NewTarget(address string, ability Ability) (Target, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return Target{}, fmt.Errorf("target %q is no URL of a service, such as http://127.0.0.1:8081", address)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, u.RawQuery != "", u.ForceQuery, u.Fragment != "":
		return Target{}, fmt.Errorf("target %q is no URL of a service, such as http://127.0.0.1:8081", u.Redacted())
	case possible[ability] == nil:
		return Target{}, fmt.Errorf("ability %q of %s is none of %s, %s, %s", ability, address, Operations, Keys, None)
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	return Target{strings.TrimRight(u.String(), "/"), ability}, nil
}
