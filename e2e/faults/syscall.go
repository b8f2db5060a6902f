package faults

import (
	"fmt"
	"os/exec"
)

// Syscalls of embedded SQLite at which a process can be struck. SQLite in WAL mode writes a transaction with pwrite64 and makes it last with
// fsync or fdatasync (which of them depends on the build): struck before the last write nothing is left of it, struck at the sync it is committed and nobody was told.
const (
	Write = "pwrite64"
	Sync  = "fsync,fdatasync"
)

// AtSyscall strikes a process at its Nth such system call, counted in each of its threads. It takes strace.
type AtSyscall struct {
	Syscalls string // Write or Sync
	Do       string // "signal=KILL", "signal=STOP", "error=ENOSPC"
	Nth      string // "3": the third; "3+": from the third on
}

// CanTrace reports whether this machine can strike at system calls: strace is there and may trace.
func CanTrace() bool {
	return exec.Command("strace", "-D", "-qq", "-o", "/dev/null", "true").Run() == nil
}

// Prefix is what goes in front of a command so that it is struck. The traced process keeps the id that its starter sees (-D).
func (a AtSyscall) Prefix() []string {
	// Without --seccomp-bpf, with which strace 6.1 injects no signals.
	return []string{
		"strace", "-D", "-f", "-qq", "-o", "/dev/null", "--signal=none",
		"-e", "trace=" + a.Syscalls,
		"-e", fmt.Sprintf("inject=%s:%s:when=%s", a.Syscalls, a.Do, a.Nth),
	}
}
