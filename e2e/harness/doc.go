// Package harness runs the real binary: it starts roles as processes over a database of their own, asks them over HTTP, kills, freezes and
// restarts them, and looks into the database behind their backs. Whatever it starts is ended by its process id when the laboratory closes,
// and by the kernel should we die first.
package harness
