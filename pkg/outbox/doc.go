// Package outbox brings effects to targets outside: at most one effect per operation, whatever dies, hangs, is lost or arrives
// late, and where that can't be known, an operation that says so. It is docs/protocol.md in code and keeps its words.
//
// An effect is a row, written in the transaction that accepts its operation. A worker takes it (commits that a byte may now
// leave), sends once, and settles what came back. Whatever is not settled is asked about, under a new fence, before anything is
// sent again. A provider turns what it observed into [Evidence]; it never decides.
//
//	ability.go    what a target can do
//	effect.go     the row, and the key that the target knows the effect by
//	evidence.go   what a call has shown
//	rows.go       one function for each step of the protocol's table: a compare-and-set statement
//	send.go       take to send, one call, its evidence
//	ask.go        take to ask, close and look up, their evidence
//	settle.go     evidence → effect row, operation and domain row, once
//	schedule.go   when to send or ask again
//	dispatch.go   which effects are due, and who goes first
//	outbox.go     puts them together, starts and stops
package outbox
