// Package deployments brings releases to environments: named by what can't change, one at a time in each environment, and with a
// status that anyone can ask for.
//
// The journey of a request through this folder:
//
//	config.go       every setting, its default and why
//	service.go      puts the stages together, starts and stops them; the only file that knows all others
//	http.go         who is calling, with which key; decodes, calls, writes; http_deployment.go, http_environment.go
//	command.go      the commands: defaults, rules about their members; what is fingerprinted
//	artifact.go     what names an artifact for good, and how to get such a name; pure
//	execute.go      a command inside its claim's transaction: domain rows and effect row; no network; execute_cancel.go,
//	                execute_rollback.go, execute_environment.go
//	deployment.go   what a deployment is, and its resource; pure
//	environment.go  what an environment is: releases, the lock and who waits for it; pure
//	provider.go     one call to the cluster; provider_rollout.go, provider_cancel.go
//	evidence.go     what its answer, or the lack of one, shows; evidence_rollout.go, evidence_cancel.go
//	settle.go       how a rollout ended: at the deployment, its environment and as the final answer; whose turn comes then;
//	                settle_cancel.go how a stop did, settle_environment.go tokens and floors of the lock
//	store.go        rows ↔ deployments; store_environment.go rows ↔ environments. The only files with queries
//	fsck.go         what must be true across the tables, checked from outside
//
// The lock of an environment is its row: a holder and the last fencing token. It is taken in the transaction that makes a rollout due,
// and left in the one that settles it, which also gives it to whoever has waited longest. Each send draws a new token, and the cluster
// refuses those below its floor, so a sender that was paused for hours disturbs nobody (docs/protocol.md, rule 14).
package deployments
