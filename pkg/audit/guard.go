package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// lookAgain is how often a gate that is shut looks whether an operator has accepted what shut it, and how long a look counts that found it open, in a
// process that does not seal.
const lookAgain = time.Second

// gate is whether the database is the one that was sealed last.
type gate struct {
	mu     sync.Mutex
	open   bool
	why    error     // it is shut; nil while nobody has looked
	looked time.Time // when somebody did last, by our clock
	inside map[int]context.CancelFunc
	passed int // how often anything went inside, which names it there
}

// Guard returns nil if the database is what the checkpoint outside says of it, or there is none outside. idempotency.ErrRewound: it is an
// older one, or has gone another way since, until an operator accepts that (Accept).
func (s *Sealer) Guard(ctx context.Context) error {
	if known, why := s.gate.known(s.every > 0); known {
		return why
	}
	err := s.look(ctx)
	s.found(ctx, err)
	return err
}

// WhileOpen runs something whenever the gate is open, until ctx ends.
func (s *Sealer) WhileOpen(ctx context.Context, run func(ctx context.Context)) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		if s.Guard(ctx) == nil {
			inside, leave := context.WithCancel(ctx)
			out := s.gate.enter(leave)
			run(inside)
			out()
			leave()
		}
		pause.Reset(lookAgain)
	}
}

// found notes what a look at the database has shown. One that is set back under a running service shuts the gate again.
func (s *Sealer) found(ctx context.Context, err error) {
	switch {
	case err == nil:
		s.gate.set(true, nil)
	case errors.Is(err, idempotency.ErrRewound):
		if s.gate.set(false, err) {
			s.log.ErrorContext(ctx, "nothing is sent or written until this is accepted", slog.String("service", s.service), slog.Any("error", err))
		}
	}
}

// known is what the last look has shown, as long as that counts. Who seals looks each time, and says what that has shown.
func (g *gate) known(sealing bool) (known bool, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	fresh := time.Since(g.looked) < lookAgain
	return g.open && (sealing || fresh) || g.why != nil && fresh, g.why
}

// set opens or shuts the gate and reports whether it was otherwise.
func (g *gate) set(open bool, why error) (news bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	news = g.open || g.why == nil
	g.open, g.why, g.looked = open, why, time.Now()
	if !open {
		for _, leave := range g.inside {
			leave()
		}
	}
	return news
}

// enter says how to end what goes inside, when the gate shuts; if it has shut since it was found open, that is now. Several go inside side by side. out is
// called by what has left.
func (g *gate) enter(leave context.CancelFunc) (out func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.open {
		leave()
	}
	if g.inside == nil {
		g.inside = map[int]context.CancelFunc{}
	}
	name := g.passed
	g.passed++
	g.inside[name] = leave
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.inside, name)
	}
}

// look compares for the gate.
func (s *Sealer) look(ctx context.Context) error {
	if s.files.Dir == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// First what is outside, which the database is ahead of at any time.
	outside, err := s.files.Checkpoint()
	if err != nil || outside == "" {
		return err
	}
	if err := s.readOrigin(ctx); err != nil {
		return database.Classify(err)
	}
	was, err := readTree(s.db.Read(ctx))
	if err == nil {
		err = s.compare(ctx, was, outside)
	}
	return database.Classify(err)
}

// compare holds the tree against the checkpoint that was outside before it was read. The caller holds mu and has read the origin.
func (s *Sealer) compare(ctx context.Context, was tree, outside string) error {
	if outside == "" {
		return nil
	}
	if outside == s.kept && was.Size >= s.known.Size {
		return nil
	}
	keys, err := s.files.Keys()
	if err != nil {
		return err
	}
	c, by, err := OpenCheckpoint(outside, keys)
	if err != nil {
		return fmt.Errorf("%s, signed by %q: %w", s.files.CheckpointFile(), by, err)
	}
	if err := s.rewound(ctx, was, c); err != nil {
		return err
	}
	s.known, s.kept = c, outside
	return nil
}

// rewound says how the tree is not one that a checkpoint is of.
func (s *Sealer) rewound(ctx context.Context, was tree, c Checkpoint) error {
	switch {
	case c.Origin != s.origin:
		return fmt.Errorf("%w: the checkpoint in %s is of the log %s, and this database's is %s; if both go on, give each an EINMAL_AUDIT_DIR of its own, and einmal audit accept goes on with this one alone", idempotency.ErrRewound, s.files.CheckpointFile(), c.Origin, s.origin)
	case was.Size < c.Size:
		return fmt.Errorf("%w: %d events are sealed in it, and %d were when %s was written; einmal audit accept goes on without them", idempotency.ErrRewound,
			was.Size, c.Size, s.files.CheckpointFile())
	}
	root, err := tlog.TreeHash(c.Size, storedHashes{s.db.Read(ctx)})
	switch {
	case errors.Is(err, errNoHash), err == nil && root != c.Root:
		return fmt.Errorf("%w: its first %d events are not those that %s was signed for; einmal audit verify says which", idempotency.ErrRewound, c.Size, s.files.CheckpointFile())
	}
	return err
}
