package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/pgserver"
)

// Options say what a laboratory works with.
type Options struct {
	// Binary is the einmal binary under test.
	Binary string
	// Database is "sqlite", "postgres" (a private server is started) or the URL of a PostgreSQL database whose user may create others; that
	// database itself is left alone.
	Database string
}

// Lab is the place where scenarios run: a binary, a database server and a directory for what they write.
type Lab struct {
	Kind   database.Kind
	Server *pgserver.Server // nil on SQLite

	binary string
	dir    string
	inside bool // another laboratory, whose server it uses

	mu            sync.Mutex
	databases     []*Database
	services      []*Service
	agents        []*Agent
	alertmanagers []*Alertmanager
	servers       []*pgserver.Server // beside the first
	serial        int
}

// New opens a laboratory. The caller closes it.
func New(ctx context.Context, opts Options) (*Lab, error) {
	l := &Lab{Kind: database.Postgres, binary: opts.Binary}
	var err error
	switch {
	case opts.Database == "sqlite":
		l.Kind = database.SQLite
	case opts.Database == "postgres":
		// Durable: what the scenarios show holds for the settings that services run with.
		l.Server, err = pgserver.Start(ctx, pgserver.Options{Durable: true})
	case strings.Contains(opts.Database, "://"):
		l.Server, err = pgserver.At(opts.Database)
	default:
		err = fmt.Errorf("database %q is none of sqlite, postgres, or the URL of a PostgreSQL database", opts.Database)
	}
	if err != nil {
		return nil, fmt.Errorf("open laboratory: %w", err)
	}
	if l.dir, err = os.MkdirTemp("", "einmal-lab-"); err != nil {
		return nil, errors.Join(fmt.Errorf("open laboratory: %w", err), l.Close())
	}
	return l, nil
}

// Room is a laboratory inside this one, for one play: what happens in it disturbs no other, and goes when it is closed. The server is the
// same.
func (l *Lab) Room() (*Lab, error) {
	dir, err := os.MkdirTemp(l.dir, "room-")
	if err != nil {
		return nil, fmt.Errorf("open room: %w", err)
	}
	return &Lab{Kind: l.Kind, Server: l.Server, binary: l.binary, dir: dir, inside: true}, nil
}

// Run runs a command of the binary that ends by itself, and returns what it printed.
func (l *Lab) Run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, l.binary, args...)
	cmd.Dir, cmd.Env = l.dir, environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("einmal %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// StartServer starts another PostgreSQL server, which lasts until the laboratory is closed.
func (l *Lab) StartServer(ctx context.Context, opts pgserver.Options) (*pgserver.Server, error) {
	server, err := pgserver.Start(ctx, opts)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers = append(l.servers, server)
	return server, nil
}

// Close ends every process and removes every database that the laboratory has made.
func (l *Lab) Close() error {
	err := l.clear()
	if l.Server != nil && !l.inside {
		err = errors.Join(err, l.Server.Stop())
	}
	if l.dir != "" {
		err = errors.Join(err, os.RemoveAll(l.dir))
	}
	return err
}

// clear ends every process and removes every database.
func (l *Lab) clear() error {
	l.mu.Lock()
	services, agents, alertmanagers, databases, servers := l.services, l.agents, l.alertmanagers, l.databases, l.servers
	l.services, l.agents, l.alertmanagers, l.databases, l.servers = nil, nil, nil, nil, nil
	l.mu.Unlock()

	var errs []error
	for _, a := range alertmanagers {
		errs = append(errs, a.Kill())
	}
	for _, a := range agents {
		errs = append(errs, a.Kill())
	}
	for _, s := range services {
		errs = append(errs, s.Kill())
	}
	// Not the caller's context: it may be what has ended.
	ctx, cancel := context.WithTimeout(context.Background(), clearWithin)
	defer cancel()
	for _, d := range databases {
		errs = append(errs, d.drop(ctx))
	}
	for _, s := range servers {
		errs = append(errs, s.Stop())
	}
	return errors.Join(errs...)
}

// clearWithin bounds the removal of one play's databases, which takes milliseconds.
const clearWithin = 20 * time.Second

// path is a new file name in the laboratory's directory.
func (l *Lab) path(kind string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serial++
	return filepath.Join(l.dir, fmt.Sprintf("%03d-%s", l.serial, kind))
}

// environment is what every process of the binary gets: ours, without settings that are meant for ourselves, and with these.
func environment(settings ...string) []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "EINMAL_") {
			env = append(env, variable)
		}
	}
	return append(env, settings...)
}
