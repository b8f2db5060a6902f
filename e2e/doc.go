// Package e2e is the laboratory: it runs failure scenarios against real processes and real databases, with faults that come from outside.
//
// `einmal scenarios` and `go test ./e2e` call the same [Run]. A scenario is one file in e2e/scenarios; it starts services through e2e/harness and
// breaks things through e2e/faults. After every scenario, whatever it was about, the rows in the database and the real effects outside are counted,
// `einmal fsck` must find nothing, every service must leave cleanly when asked to, and the fault must really have happened.
package e2e
