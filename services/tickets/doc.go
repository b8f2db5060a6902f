// Package tickets keeps tickets, of which an event of the outside world has one at most per project, however often it is
// reported and by how many senders. Where there is an external desk, a following operation brings each new ticket to it, once.
//
// The journey of a request through this folder:
//
//	config.go    every setting, its default and why
//	service.go   puts the stages together, starts and stops them; the only file that knows all others
//	http.go      who is calling, with which key; decodes, calls, writes
//	command.go   the commands: defaults, rules about their members; what is fingerprinted
//	execute.go   a command inside its claim's transaction: domain rows, answer and the mirror that follows; no network
//	ticket.go    what a ticket is, and its resource; comment.go and status.go likewise; pure
//	hook.go      what Alertmanager calls: the key of each alert is made here; alert.go is what an alert is
//	provider.go  one call to the desk
//	evidence.go  what its answer, or the lack of one, shows; pure
//	settle.go    how a mirror ended: at the ticket, and as the final answer of its operation
//	store.go     rows ↔ tickets and comments; with store_comment.go the only file with queries that a request makes
//	fsck.go      what must be true across the tables, as queries of its own: it must not share a mistake with the store
//
// What a stage does for one noun alone is in a file that says so: command_comment.go, execute_status.go.
package tickets
