// Package record keeps what passed between the parts of a laboratory while a scenario ran, where it passed, for whoever draws it afterwards.
//
// It promises to change nothing: a [Log] takes a copy of a few short texts under a mutex, waits for nobody and fails nothing. It keeps no token and
// no header but the idempotency key and its outcome, and of a body no more than its beginning. A nil Log records nothing, so that nobody has to ask
// whether there is one.
package record
