// Package idempotency makes a write safe to retry: however often one operation is attempted, and whatever dies in between, it
// is executed at most once, and every attempt gets the same answer.
//
// The words, spelled the same in Go, SQL, JSON, metrics and tests:
//
//	operation    one intended action of one account, identified by (account, idempotency key); id op_…
//	attempt      one request for an operation
//	command      the validated, normalised request: defaults applied, unknown fields refused
//	fingerprint  SHA-256 of the canonical command with method, concrete path, account and a version
//	claim        inserting the operation row; whoever inserts it owns the operation
//	replay       answering an attempt from the stored response
//	settle       recording the outcome of an effect, once
//	unknown      an effect may have happened or may still happen; durable, visible, never guessed away
//
// [Executor.Do] is the whole of it for a caller: the claim, the rows of the domain, the stored response and the audit events
// are one transaction, with the claim first. A crash leaves all of it or nothing, so a retry simply runs or replays. Work whose
// effect is outside the database is only accepted there (state queued) and settled later ([Executor.Settle]); no call leaves
// inside a transaction.
//
// The way of one attempt through the files, from [Executor.Do]:
//
//	executor.go     what is asked and answered; run again what lost a race, look for a lost COMMIT
//	key.go          what a key is
//	fingerprint.go  what a command is
//	wait.go         duplicates in this process wait; what was lately seen is read first
//	attempt.go      one transaction: claim, apply, answer, events; or what the claim was lost against
//	claim.go        the statements
//	operation.go    the row, its answer, ids
//	state.go        the one table of what may follow what
//	event.go        what is told about it
//	settle.go       following operations, and answers that come later
//	read.go         reading operations
//
// What it refuses to do: run anything without a key or a database, run twice because a response has expired, answer one caller
// with another's result from memory, or guess what a lost COMMIT did.
//
// It needs the standard library, gorm, a JSON encoder that canonicalises, package database beside it (not its dbtest and
// pgserver), and of the tables of migrations/{postgres,sqlite}/shared those that are called operations and events (effects and
// reviews are package outbox's and review's). Package idemhttp is its edge for echo, with problem. docs/copying.md says how to take it.
package idempotency
