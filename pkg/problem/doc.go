// Package problem is how einmal says no: RFC 9457 problem documents, and the one catalogue of everything that can be said.
//
// Who calls an API like this is often a program that sees only the body, so a problem carries, beside RFC 9457's members,
// what the caller needs to act without reading prose:
//
//	code         which problem; stable, and the last part of type
//	effect       what this says about the effect of the operation: none, applied, unknown
//	retry        with which key another attempt may be made: same_key, new_key, never
//	next_action  what to do now
//
// The catalogue (catalogue.go) is the only place where a code, its status and this advice meet. New fills a problem from
// it; a code that is not in it becomes internal-error, since a caller must never receive advice that nobody wrote down.
//
// Two promises hold for every entry, and a test keeps them: an answer whose effect is unknown never advises a new key,
// and an answer that names a time to wait advises the same key.
package problem
