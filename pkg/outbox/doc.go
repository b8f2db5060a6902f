// Package outbox brings effects to targets outside: at most one effect per operation, whatever dies, hangs, is lost or arrives
// late, and where that can't be known, an operation that says so. It is docs/protocol.md in code and keeps its words.
//
// An effect is a row, written in the transaction that accepts its operation. A worker takes it (commits that a byte may now
// leave), sends once, and settles what came back. Whatever is not settled is asked about, under a new fence, before anything is
// sent again. A provider turns what it observed into [Evidence]; it never decides.
//
//	effect.go     the row, and the key that the target knows the effect by
//	namespace.go  the part of the key that tells installations apart
//	target.go     a system outside: who calls it, how often, how long; ability.go what it can do
//	evidence.go   what a call has shown; attempt.go the call
//	rows.go       one function for each step of the protocol's table: a compare-and-set statement
//	take.go       what comes before a call: a take, committed, and a clock that has not run out
//	learn.go      a reference, committed before the call that moves something
//	failure.go    what a call over HTTP shows that got no answer; retry_after.go when the target wants to be called again
//	send.go       take to send, one call, what follows from it
//	ask.go        take to ask, close or look up, what follows from it
//	settle.go     the step that follows → effect row, operation and domain row, once
//	approval.go   what a person must agree to before it is sent
//	expiry.go     questions that nobody has answered in time
//	turn.go       operations that wait for one another, or end one another
//	lock.go       what a service does for a target whose effects each hold a lock
//	person.go     what people ask for: reconcile, cancel, decide
//	reused.go     an effect key that the target knows with another command
//	rewound.go    every open effect is in doubt once its database was set back
//	schedule.go   when to send or ask again
//	dispatch.go   which effects are due, and who goes first
//	unserved.go   open effects that nobody here can bring out
//	watch.go      looks for what is overdue
//	deadline.go   effects whose deadline has passed
//	escalate.go   reviews that nobody has resolved in time
//	calls.go      what the calls for an operation have shown, for who decides
//	view.go       what operations show of their effects
//	signal.go     wakes those who wait
//	metrics.go    what an operator watches
//	outbox.go     puts them together, starts and stops
package outbox
