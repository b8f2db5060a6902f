// Package catalogue is the list of everything a client can ask for that changes something: the operation types, and for each
// the policy by which it may be repeated.
//
// The catalogue is code (entries.go) and it is published, as the document at /.well-known/idempotency-policy and as the table
// that `einmal policy` prints. It is enforced: CheckRoutes names the write routes that are in no entry, and a service that
// has one does not start. So no write can be added without somebody having answered what happens when it is sent twice.
//
// A type is listed when its route exists, never before: the policy is what a client may rely on today.
package catalogue
