package server

import (
	"fmt"
	"math"
	"strings"

	"github.com/labstack/echo/v4"
	"golang.org/x/time/rate"

	"github.com/einmal/einmal/pkg/problem"
)

// Require is the guard of a route: it lets pass who has one of the roles (403 otherwise) and whose account is within its
// limit (429 otherwise), in this order. It comes before everything that looks at the key, so neither uses a key up, and a
// replay passes it like a first attempt.
func Require(roles ...Role) echo.MiddlewareFunc {
	if len(roles) == 0 {
		panic("server.Require: a route that nobody may call")
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := requestOf(c)
			if r.principal.Name == "" {
				return challenge(c, false) // a public path: nobody was asked
			}
			if !r.principal.Has(roles...) {
				return problem.New(problem.Forbidden, fmt.Sprintf("This takes one of the roles %s; %s has %s.", list(roles), r.principal.Name, list(r.principal.Roles)))
			}
			if err := take(r.limiter); err != nil {
				return err
			}
			r.guarded = true
			return next(c)
		}
	}
}

// list is roles as they are told.
func list(roles []Role) string {
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = string(role)
	}
	return strings.Join(names, ", ")
}

// PrincipalOf returns who is calling. On a route without Require it panics: everything a service stores belongs to an
// account, so a route that nobody guards answers 500 the first time it is tried, instead of answering everybody.
func PrincipalOf(c echo.Context) Principal {
	r := requestOf(c)
	if !r.guarded {
		panic("server.PrincipalOf: " + c.Path() + " has no server.Require")
	}
	return r.principal
}

// limits are the rate limiters of the accounts. All accounts are known at the start, so the map never changes.
type limits map[string]*rate.Limiter

func newLimits(config Config, known identities) limits {
	all := limits{}
	for _, p := range known {
		if config.RateLimit > 0 && all[p.Account] == nil {
			all[p.Account] = rate.NewLimiter(rate.Limit(config.RateLimit), config.RateBurst)
		}
	}
	return all
}

// take lets one request pass, or says how long to wait for the next. A nil limiter has no limit.
func take(limiter *rate.Limiter) error {
	if limiter == nil || limiter.Allow() {
		return nil
	}
	next := limiter.Reserve()
	delay := next.Delay()
	next.Cancel() // asked only when
	p := problem.New(problem.RateLimited, fmt.Sprintf("The account's limit is %g requests a second.", float64(limiter.Limit())))
	p.RetryAfterSeconds = max(1, int(math.Ceil(delay.Seconds())))
	return p
}
