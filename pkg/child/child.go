// Package child starts processes that do not outlive us.
//
// A process started here ends when we end, even when we are killed: the kernel sends it a signal of our choice (Linux; elsewhere it is
// only stopped by whoever calls Stop). It runs in a process group of its own, so that a Ctrl-C in the terminal reaches us alone and the
// children are stopped in our order, each by its id.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is a started process. Its methods may be called from several goroutines.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// Start starts cmd. Should we die first, the kernel sends it onOurDeath.
func Start(cmd *exec.Cmd, onOurDeath syscall.Signal) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithUs(cmd.SysProcAttr, onOurDeath)

	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// run starts and awaits the process on one operating system thread: the kernel counts the death of the thread that started a process as
// the death of its parent, so that thread has to live as long as the process does.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	err := p.cmd.Start()
	started <- err
	if err == nil {
		p.err = p.cmd.Wait()
	}
	close(p.done)
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed once the process has ended and its output has been read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the end of the process and reports how it ended, as exec.Cmd.Wait does.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// KilledBy waits for the end of the process and reports the signal that ended it, 0 if it exited by itself.
func (p *Process) KilledBy() syscall.Signal {
	<-p.done
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal()
	}
	return 0
}

// Signal sends sig. It is no error that the process has ended already.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to process %d: %w", sig, p.Pid(), err)
	}
	return nil
}

// Stop asks the process to end with sig and reports how it ended. One that takes longer than patience is killed, which is an error.
func (p *Process) Stop(sig syscall.Signal, patience time.Duration) error {
	if err := p.Signal(sig); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(patience):
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return fmt.Errorf("process %d did not end within %v of %v and was killed", p.Pid(), patience, sig)
}
