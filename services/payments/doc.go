// Package payments takes orders, and authorises, captures, cancels and refunds their payments at a payment provider: an order is paid
// once, amounts are exact, and what is not known is never guessed.
//
// The journey of a request through this folder:
//
//	config.go    every setting, its default and why
//	service.go   puts the stages together, starts and stops them; the only file that knows all others
//	http.go      who is calling, with which key; decodes, calls, writes; http_order.go, http_payment.go, http_refund.go the routes
//	command.go   the commands: rules about their members; what is fingerprinted, which counts money in minor units
//	execute.go   a command inside its claim's transaction: domain rows and the effect; no network; execute_*.go by noun
//	order.go     what an order is, and payment.go, refund.go; pure
//	provider.go  calls to the provider, each once; provider_*.go one verb each
//	evidence.go  what its answer, or the lack of one, shows
//	settle.go    how an effect ended: at the payment or refund, and as the final answer of its operation
//	hook.go      what the provider tells by itself; hook_unmatched.go what it tells of things that are not ours
//	store.go     rows ↔ domain, the only files with queries; store_*.go by noun
//	fsck.go      what must be true across the tables, checked from outside
package payments
