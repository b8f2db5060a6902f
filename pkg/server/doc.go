// Package server is what all services share around their handlers: who is calling, how often, what an error becomes, what is
// logged and counted, when the process is ready, and how it leaves.
//
// One request passes, from outside to inside:
//
//	observe       request id, no-store, panics, the one log line, metrics               observe.go
//	authenticate  401, before anything tells whether a route exists                     authenticate.go
//	route         404 and 405 with Allow, OPTIONS                                       route.go
//	Require       403 by role, then 429 by account: the guard of each route             require.go
//	the handler   a plain echo handler of the service
//
// Whatever returns an error returns it to observe, which answers it in one place (failure.go): a problem document, exactly
// one, and only if no answer was begun.
//
// What is left out on purpose: a time-out middleware, since one that answers while the handler still runs mixes two answers
// on one connection (handlers have deadlines of their own, the connection has those of net/http); compression, since a replay
// is byte-equal to the first answer; CORS, since no browser calls these APIs. Do not use echo's Group.Use: it registers
// handlers for unknown paths that turn 405 into 404.
package server
