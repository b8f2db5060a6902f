// Package faults breaks things from outside: it stands between a caller and a service, or between a service and its database, and fails
// where networks, disks and machines fail. The services know nothing of it and have no test hooks.
//
// Every fault counts how often it really happened (Fired): a scenario whose fault never fired has shown nothing.
package faults
