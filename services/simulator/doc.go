// Package simulator is the outside world: systems of others in which services cause effects, and which can be told to fail.
// What it keeps is the truth of every scenario: a ledger of the effects that really happened, and a list of all requests that
// really arrived. Both survive it, as do faults, abilities and what a target remembers.
//
// The journey of a request through this folder:
//
//	config.go     every setting, its default and why
//	service.go    puts the parts together, starts and stops them; the only file that knows all others
//	operation.go  the way of every request to a target: recorded, perhaps struck, decided in one transaction, perhaps struck again
//	batch.go      transactions, each for all requests that wait for one
//	token.go      who may ask, who may only look
//	call.go       the list of requests received
//	fault.go      faults: armed, and taken in the transaction of what they strike
//	strike.go     what each fault does to a connection
//	ability.go    what a target can do; every combination is allowed
//	key.go        effect keys: remembered, in progress, closed
//	ledger.go     the ledger of effects
//	desk.go       the target desk: a ticket desk under /desk/v1
//	control.go    /_faults, /_abilities, /_ledger, /_calls: for whoever directs the world
//	decode.go     strict bodies, and sentences about what is wrong with them
//	answer.go     answers
//
// A target is code that fits in one file: its routes and rules. The rest is the same for all of them.
//
// One process serves a database. Which send of a key is in progress is known in memory only; everything else about keys is
// decided by their rows.
package simulator
