package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// usage is what a measurement cost. On a machine that others use, too, it moves less than the time.
type usage struct {
	cpu      time.Duration // of this process: callers and service
	postgres time.Duration // of the database's processes; 0 on SQLite, which is in this process, and where there is no /proc
	allocs   uint64
}

// processes are those of the database, which are on this machine because the server is ours.
func (t *target) processes(ctx context.Context) (pids []int, err error) {
	if t.db.Kind() == database.Postgres {
		err = t.db.Read(ctx).Raw("SELECT pid FROM pg_stat_activity").Scan(&pids).Error
	}
	return pids, err
}

func usageOf(processes []int) (u usage) {
	var spent syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &spent) // fails for wrong arguments only
	u.cpu = time.Duration(spent.Utime.Nano() + spent.Stime.Nano())
	for _, pid := range processes {
		var nanoseconds int64
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		_, _ = fmt.Sscan(string(text), &nanoseconds)
		u.postgres += time.Duration(nanoseconds)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	u.allocs = memory.Mallocs
	return u
}

func (u usage) since(before usage) usage {
	return usage{u.cpu - before.cpu, u.postgres - before.postgres, u.allocs - before.allocs}
}

// cpuOf is the processor time that a process has spent, with all its threads; 0 where there is no /proc.
func cpuOf(pid int) time.Duration {
	const tick = 10 * time.Millisecond // Linux counts in hundredths, whatever its own are
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, fields, _ := strings.Cut(string(text), ") ") // the name before it may hold anything
	all := strings.Fields(fields)
	if len(all) < 13 {
		return 0
	}
	var ticks time.Duration
	for _, field := range all[11:13] { // in user and in system mode
		n, _ := strconv.Atoi(field)
		ticks += time.Duration(n)
	}
	return ticks * tick
}
