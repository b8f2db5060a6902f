// Package agent is the other end of the promise: a client that cannot forget what it has begun.
//
// A service that makes every retry safe is of no use to a caller that makes a new key for every attempt, or loses the key with its process. So here
// the key is on disk before the first byte of a request leaves, and whatever happens after that, the same step of the same run is the same
// key. The words, as everywhere in einmal, and these of the agent's own:
//
//	run          one piece of work of an agent, named by whoever starts it
//	step         the workflow's stable name for one action of a run; without one, the command itself is the name
//	intention    what (run, step) names: one command for one target, under one key
//	journal      the file in which intentions, attempts and what was seen of them stand
//	attempt      one request that may have the effect; it is in the journal before it leaves
//	hand over    to stop, and give a person everything that was gathered
//
// The same command under a step is the same entry, however often it is asked for; another command under it is a question for a person
// ([ErrStepChanged]); a deliberate second action names a new step. What to do next is decided by a table over everything that can be seen, the whole
// problem catalogue included (contract.go), by status and code and never by a text. What it may cost is bounded by budgets that a restart does not
// renew (budget.go): when they end, the agent hands over instead of waiting.
//
// The way of one step through the files, from [Agent.Do]:
//
//	step.go      what is asked for, read strictly and as a whole before anything is sent
//	command.go   what is sent, in the one form in which commands are compared
//	plan.go      steps become entries, or are refused, before anything is sent
//	agent.go     open entries of the run first, then one step after the other
//	settle.go    one entry, until it is settled or handed over
//	due.go       when its next request is due, if there is to be one
//	client.go    one request: no re-send, no redirect
//	reading.go   what an answer says, if it can be understood
//	contract.go  what to do about it: the retry contract
//	ability.go   what is left of that at a target that can do less
//	budget.go    what it may cost; backoff.go how long to wait
//	handover.go  what is given to a person, and to a program
//	journal.go   the file; record.go its lines; entry.go what they add up to
//
// What it refuses to do: send what is not in the journal, send again what a target without keys may have done, take an answer that it does not
// understand for a failure, and wait longer than it was given.
//
// It needs the standard library, a strict JSON decoder, a UUID and package problem beside it, and can be taken with these into any runtime. It
// opens its own connections; a proxy in between that sends requests again on its own must not be configured to.
package agent
