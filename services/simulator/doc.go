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
//	psp.go        the target psp: Stripe under /psp/v1 and /v1; its concerns are psp_*.go, objects first, then what is done to them
//	cluster.go    the target cluster: releases under /cluster/v1; cluster_environment.go what it knows, cluster_rollout.go sends,
//	              cluster_ask.go look-ups, closes and stops
//	webhook.go    where a target sends its events; webhook_event.go what becomes of one, webhook_deliver.go how it is sent
//	control.go    /_faults, /_abilities, /_ledger, /_calls, /_webhooks: for whoever directs the world
//	decode.go     strict bodies, and sentences about what is wrong with them
//	answer.go     answers
//
// A target is its routes and rules. The rest is the same for all of them.
//
// One process serves a database. Which send of a key is in progress is known in memory only; everything else about keys is
// decided by their rows.
package simulator
