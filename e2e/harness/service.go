package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/einmal/einmal/e2e/record"
	"github.com/einmal/einmal/pkg/child"
)

const drainWithin = 20 * time.Second // longer than a service gives its open requests

// Settings of one service process.
type Settings struct {
	Role        string   // argument of the binary: "tickets"
	DatabaseURL string   // where it finds its database, through a proxy perhaps
	Env         []string // further settings, "EINMAL_NAME=value"
	Under       []string // a command in front of it, as faults.AtSyscall.Prefix gives
}

// Service is one process of a role. It is used by one goroutine.
type Service struct {
	settings Settings
	lab      *Lab
	address  string
	logFile  string
	process  *child.Process
	killed   bool // by us
	record   *record.Log
}

// Serve starts a service on a free port and waits until it is ready.
func (l *Lab) Serve(ctx context.Context, settings Settings) (*Service, error) {
	s := &Service{settings: settings, lab: l, logFile: l.path(settings.Role + ".log")}
	var err error
	for range portAttempts {
		if s.address, err = freeAddress(); err != nil {
			return nil, err
		}
		if err = s.Start(ctx); err == nil || !strings.Contains(s.Log(), "address already in use") {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.services = append(l.services, s)
	return s, nil
}

// URL is where callers find the service.
func (s *Service) URL() string { return "http://" + s.address }

// Address is host and port.
func (s *Service) Address() string { return s.address }

// Pid is the process id.
func (s *Service) Pid() int { return s.process.Pid() }

// Under puts a command in front of the process from its next start on. Without arguments nothing stands there any more.
func (s *Service) Under(prefix ...string) { s.settings.Under = prefix }

// Start starts the process, on the same port as before, and waits until it is ready.
func (s *Service) Start(ctx context.Context) error {
	log, err := os.OpenFile(s.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.settings.Role, err)
	}
	defer log.Close()
	argv := append(append([]string{}, s.settings.Under...), s.lab.binary, s.settings.Role)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = s.lab.dir
	cmd.Env = environment(append([]string{
		"EINMAL_LISTEN=" + s.address, "EINMAL_DATABASE_URL=" + s.settings.DatabaseURL,
		"EINMAL_AUDIT_DIR=" + s.lab.auditDir(s.settings.DatabaseURL),
	}, s.settings.Env...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if s.process, err = child.Start(cmd, syscall.SIGKILL); err != nil {
		return err
	}
	s.killed = false
	s.recordLife(ctx)
	if err := awaitReady(ctx, s.process, s.URL()+"/readyz"); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w\n%s", s.settings.Role, err, s.Log()), s.Kill())
	}
	s.mark(record.Ready)
	return nil
}

// Terminate asks the process to drain and leave, as an orchestrator does. It is an error that it leaves with another status than 0, or has ended by
// itself.
func (s *Service) Terminate() error {
	if s.killed {
		return nil
	}
	if err := s.process.Signal(syscall.SIGCONT); err != nil { // frozen, it would hear nothing
		return err
	}
	if err := s.process.Stop(syscall.SIGTERM, drainWithin); err != nil {
		return fmt.Errorf("terminate %s: %w", s.settings.Role, err)
	}
	return nil
}

// Kill ends the process as a crash does: at once, wherever it is.
func (s *Service) Kill() error {
	s.killed = true
	s.mark(record.Killed)
	if err := s.process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-s.process.Done()
	return nil
}

// Freeze stops the process where it is, as a paused machine would; Thaw lets it go on.
func (s *Service) Freeze() error {
	s.mark(record.Frozen)
	return s.process.Signal(syscall.SIGSTOP)
}

// Thaw ends Freeze.
func (s *Service) Thaw() error {
	s.mark(record.Thawed)
	return s.process.Signal(syscall.SIGCONT)
}

// Frozen tells whether the process is stopped.
func (s *Service) Frozen() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Pid()))
	// The state follows the name, which is in parentheses.
	_, state, _ := strings.Cut(string(stat), ") ")
	if err != nil { // no Linux
		out, _ := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(s.process.Pid())).Output()
		state = string(out)
	}
	return strings.HasPrefix(strings.ToUpper(state), "T") // t: stopped while traced
}

// Ended tells whether the process has ended, by whatever.
func (s *Service) Ended() bool {
	select {
	case <-s.process.Done():
		return true
	default:
		return false
	}
}

// AwaitEnd waits for the process to end, but no longer than that.
func (s *Service) AwaitEnd(most time.Duration) {
	select {
	case <-s.process.Done():
	case <-time.After(most):
	}
}

// Killed waits for the process to end and reports whether a kill ended it.
func (s *Service) Killed() bool { return s.process.KilledBy() == syscall.SIGKILL }

// Log is all that the processes of this service have written.
func (s *Service) Log() string {
	text, err := os.ReadFile(s.logFile)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
