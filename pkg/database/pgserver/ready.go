package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/einmal/einmal/pkg/child"
)

// errEndedEarly means that the server ended before it answered once; most often another process has its port.
var errEndedEarly = errors.New("PostgreSQL ended while it started")

// pollEvery is how often we ask a starting server for a connection: short beside the start itself, long beside a refused connection.
const pollEvery = 10 * time.Millisecond

func (s *Server) awaitReady(ctx context.Context, process *child.Process) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		conn, err := pgconn.Connect(ctx, s.home.String())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-process.Done():
			return fmt.Errorf("%w: %w\n%s", errEndedEarly, process.Err(), s.log())
		case <-ctx.Done():
			return fmt.Errorf("wait for PostgreSQL: %w\n%s", err, s.log())
		case <-poll.C:
		}
	}
}

// log is what the server said since it was started, for error messages.
func (s *Server) log() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}
