// Package pgserver runs a private PostgreSQL server for tests, scenarios and benchmarks.
//
// The server lives in a directory of its own, listens on 127.0.0.1 on a free port, trusts everyone who reaches that port, ends when we end
// and takes its directory with it. PostgreSQL refuses to run as root: a root caller's server runs as an unprivileged user instead.
//
// Where a machine has no PostgreSQL to start, At makes use of a server that somebody else runs.
package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/einmal/einmal/pkg/child"
)

// superuser owns everything in the server. Nobody else connects to a private server.
const superuser = "postgres"

const (
	readyWithin = 30 * time.Second // a start takes a fifth of a second; crash recovery on a busy machine takes longer
	stopWithin  = 10 * time.Second // a fast shutdown waits for nobody, but writes a checkpoint

	// portAttempts bounds how often we look for a free port: between finding one and listening on it another process may take it.
	portAttempts = 5
)

// Options says what a server is for. The zero value is a server for unit tests.
type Options struct {
	// Durable makes commits survive a loss of power, as in production. Without it the server does not wait for the disk, which is what
	// unit tests want; whatever measures or kills something wants the truth.
	Durable bool
	// MaxConnections bounds the connections of all clients together. 0 means 200: several services and tests with a pool each.
	MaxConnections int
	// Env is added to the server's environment: "LD_PRELOAD=…" of a library that gives it another clock.
	Env []string
}

// Server is a running server, until Stop.
type Server struct {
	home    *url.URL // of the database from which others are made
	opts    Options
	bin     string
	dir     string // empty: somebody else's server
	account *account
	process *child.Process // nil while halted
}

// Start creates a server and waits until it answers. Without PostgreSQL on this machine the error is ErrNoBinaries.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.MaxConnections == 0 {
		opts.MaxConnections = 200
	}
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	account, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "einmal-postgres-")
	if err != nil {
		return nil, fmt.Errorf("create server directory: %w", err)
	}
	s := &Server{
		home: &url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/postgres", RawQuery: "sslmode=disable"},
		opts: opts, bin: bin, dir: dir, account: account,
	}
	if err := s.create(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// At is a server that somebody else runs, by the URL of one of its databases and a user who may create others. It has every method but Halt
// and Resume; Stop leaves it running.
func At(home string) (*Server, error) {
	u, err := url.Parse(home)
	if err != nil {
		return nil, errors.New("the URL of the PostgreSQL server is none") // and may hold a password
	}
	if u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" || strings.Trim(u.Path, "/") == "" {
		return nil, errors.New("the URL of the PostgreSQL server must look like postgres://user@host:5432/database")
	}
	return &Server{home: u}, nil
}

// Ours says whether we started the server and may halt it.
func (s *Server) Ours() bool { return s.dir != "" }

// URL is the address of a database of this server.
func (s *Server) URL(dbname string) string {
	u := *s.home
	u.Path = "/" + dbname
	return u.String()
}

// Halt ends the server as an operator would, cutting its connections, and keeps its directory and port for Resume.
func (s *Server) Halt() error {
	if s.process == nil {
		return nil
	}
	// SIGINT is PostgreSQL's fast shutdown: it does not wait for clients to leave.
	err := s.process.Stop(syscall.SIGINT, stopWithin)
	s.process = nil
	if err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	return nil
}

// Resume starts a halted server again, on the same port with the same databases.
func (s *Server) Resume(ctx context.Context) error {
	if s.process != nil {
		return nil
	}
	return s.run(ctx)
}

// Stop ends the server, if it is ours, and removes all it has written. It may be called again.
func (s *Server) Stop() error {
	if !s.Ours() {
		return nil
	}
	return errors.Join(s.Halt(), os.RemoveAll(s.dir))
}

// create makes the data directory and starts the server on a port that is free.
func (s *Server) create(ctx context.Context) error {
	if err := s.account.own(s.dir); err != nil {
		return err
	}
	if err := s.initdb(ctx); err != nil {
		return err
	}
	var err error
	for range portAttempts {
		if s.home.Host, err = freeAddress(); err != nil {
			return err
		}
		if err = s.run(ctx); !errors.Is(err, errEndedEarly) {
			return err
		}
	}
	return err
}

// initdb makes the data directory.
func (s *Server) initdb(ctx context.Context) error {
	cmd := exec.Command(filepath.Join(s.bin, "initdb"), "--pgdata", s.data(), "--username", superuser,
		"--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	var out bytes.Buffer
	cmd.Dir = s.dir
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = s.account.attr()
	process, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	select {
	case <-process.Done():
	case <-ctx.Done():
		_ = process.Stop(syscall.SIGTERM, stopWithin)
		return fmt.Errorf("initdb: %w", ctx.Err())
	}
	if err := process.Err(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out.String())
	}
	return nil
}

// run starts the server on its port and waits until it answers.
func (s *Server) run(ctx context.Context) error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("create server log: %w", err)
	}
	defer log.Close()

	cmd := exec.Command(filepath.Join(s.bin, "postgres"), append([]string{"-D", s.data()}, s.settings()...)...)
	cmd.Dir = s.dir
	cmd.Env = append(cmd.Environ(), s.opts.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = s.account.attr()
	// SIGQUIT is PostgreSQL's immediate shutdown: the server takes its own processes and shared memory with it.
	process, err := child.Start(cmd, syscall.SIGQUIT)
	if err != nil {
		return err
	}
	if err := s.awaitReady(ctx, process); err != nil {
		_ = process.Stop(syscall.SIGQUIT, stopWithin)
		return err
	}
	s.process = process
	return nil
}

func (s *Server) settings() []string {
	settings := []string{
		"listen_addresses=127.0.0.1",
		"port=" + s.home.Port(),
		"unix_socket_directories=", // nothing outside the directory
		"max_connections=" + strconv.Itoa(s.opts.MaxConnections),
		"autovacuum_naptime=1h", // databases live for seconds: vacuuming them is noise in every measurement
	}
	if !s.opts.Durable {
		settings = append(settings, "fsync=off", "full_page_writes=off", "synchronous_commit=off")
	}
	var args []string
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return args
}

func (s *Server) data() string    { return filepath.Join(s.dir, "data") }
func (s *Server) logFile() string { return filepath.Join(s.dir, "server.log") }

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}
