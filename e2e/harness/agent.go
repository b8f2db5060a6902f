package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/einmal/einmal/pkg/agent"
	"github.com/einmal/einmal/pkg/child"
)

// AgentSettings of one process of `einmal agent`.
type AgentSettings struct {
	Args    []string // after `einmal agent`
	Journal string
	Token   string
	Steps   string   // its standard input
	Under   []string // a command in front of it, as faults.AtSyscall.Prefix gives
}

// Agent is one process of `einmal agent`.
type Agent struct {
	process *child.Process
	out     bytes.Buffer
	log     safeBuffer
}

// AgentResult is what a process of `einmal agent --json` has said.
type AgentResult struct {
	Status int // of the exit, -1 if it was killed
	Log    string

	Error    string `json:"error"`
	CutBytes int    `json:"cut_bytes"`
	Steps    []struct {
		Disposition string `json:"disposition"`
		agent.Report
	} `json:"steps"`
}

// NewJournal is a path for a journal.
func (l *Lab) NewJournal() string { return l.path("journal") }

// Agent starts an agent. It is killed when the laboratory is closed, if nothing has ended it before.
func (l *Lab) Agent(settings AgentSettings) (*Agent, error) {
	argv := append(append([]string{}, settings.Under...), l.binary, "agent")
	argv = append(append(argv, settings.Args...), "--json", "--journal", settings.Journal)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = l.dir
	cmd.Env = environment("EINMAL_AGENT_TOKEN=" + settings.Token)
	cmd.Stdin = strings.NewReader(settings.Steps)
	a := &Agent{}
	cmd.Stdout, cmd.Stderr = &a.out, &a.log
	var err error
	if a.process, err = child.Start(cmd, syscall.SIGKILL); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.agents = append(l.agents, a)
	return a, nil
}

// Result waits for the agent to end.
func (a *Agent) Result(ctx context.Context) (AgentResult, error) {
	select {
	case <-a.process.Done():
	case <-ctx.Done():
		return AgentResult{}, fmt.Errorf("the agent does not end: %w\n%s", ctx.Err(), a.log.String())
	}
	result := AgentResult{Log: a.log.String()}
	if exit := (*exec.ExitError)(nil); errors.As(a.process.Err(), &exit) {
		result.Status = exit.ExitCode()
	}
	if result.Status < 0 {
		return result, nil
	}
	if err := json.Unmarshal(a.out.Bytes(), &result); err != nil {
		return result, fmt.Errorf("read what the agent has said: %w\n%s\n%s", err, a.out.String(), result.Log)
	}
	return result, nil
}

// Kill ends the agent as a crash does.
func (a *Agent) Kill() error {
	if err := a.process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-a.process.Done()
	return nil
}

// Killed waits for the agent to end and reports whether a kill ended it.
func (a *Agent) Killed() bool { return a.process.KilledBy() == syscall.SIGKILL }

// Log is what the agent has told while it waited.
func (a *Agent) Log() string { return a.log.String() }

// safeBuffer is read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	of bytes.Buffer
}

// Write implements io.Writer.
func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of.String()
}
