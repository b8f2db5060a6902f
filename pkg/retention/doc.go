// Package retention takes from a service's database what is past its time: first the answer of an operation that has ended, then,
// much later, the row that remembers its key. What is open never expires, however old it is.
//
//	retention.go  what a Purger is given, and its loop
//	expire.go     an answer is dropped: what is left is a tombstone
//	forget.go     a tombstone is removed, and with it the key
//	batch.go      how long anybody may have to wait for it
//	mark.go       up to when keys were forgotten
//	metrics.go    what an operator watches
//
// Each statement names the state that it may change, by account and key, so that several replicas, with older settings perhaps, never
// remove what one of them must not. Which rows are due is read before, by an index, and locks nothing. Everything is compared with the
// database's clock.
//
// Of an operation that is forgotten stay its events, with one that says so; its effect, without key and command, since late evidence may
// come for as long as the target lives; reviews, which are what people have decided; and what it has made, for ever. docs/contract.md
// promises all that; docs/decisions/0022 and 0023 say why.
package retention
