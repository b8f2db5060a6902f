package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/einmal/einmal/e2e/record"
	"github.com/einmal/einmal/pkg/child"
)

const (
	readyWithin = 20 * time.Second // a start takes a fraction of a second; on a busy machine, under strace, several
	readyEvery  = 5 * time.Millisecond
)

// ErrEnded means that a process ended before it was ready.
var ErrEnded = errors.New("it ended before it was ready")

// awaitReady waits until a process answers 200 at a URL. That it is ready is recorded, not each time that we asked.
func awaitReady(ctx context.Context, process *child.Process, url string) error {
	ctx, cancel := context.WithTimeout(record.Into(ctx, nil), readyWithin)
	defer cancel()
	poll := time.NewTicker(readyEvery)
	defer poll.Stop()
	for {
		answer := Do(ctx, Call{Base: url, Method: http.MethodGet})
		if answer.Err == nil && answer.Status == http.StatusOK {
			return nil
		}
		select {
		case <-process.Done():
			return fmt.Errorf("%w: %w", ErrEnded, process.Err())
		case <-ctx.Done():
			return fmt.Errorf("it is not ready within %v: %v", readyWithin, answer)
		case <-poll.C:
		}
	}
}
