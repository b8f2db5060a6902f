package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

const (
	// sealTimeout bounds one batch. It takes a few hundred rows away and writes a few.
	sealTimeout = 30 * time.Second

	// finishWithin is what a process that leaves has for it: some hundred thousand events.
	finishWithin = 3 * time.Second
)

// Sealer appends committed events to the tree and signs it. Several processes may seal one log: of those that take the same batch one moves the
// size of the tree, and the others begin again.
type Sealer struct {
	db      *database.DB
	log     *slog.Logger
	files   Files
	every   time.Duration
	service string
	gate    gate

	mu     sync.Mutex // held while sealing
	origin string     // of checkpoints; empty: not read yet
	known  Checkpoint // the last checkpoint outside that was held against the tree
	kept   string     // its text
	edge   *frontier  // of the tree as this process has sealed it last; nil: it has not
}

// NewSealer makes the sealer of a service's log. An error says which setting is wrong.
func NewSealer(db *database.DB, log *slog.Logger, service string, settings Sealing) (*Sealer, error) {
	files, err := settings.files(service)
	if err != nil {
		return nil, err
	}
	return &Sealer{db: db, log: log, files: files, every: settings.SealEvery, service: service}, nil
}

// Begin makes sure that there is something to sign with: a key is made for a log that has no leaf yet, and for no other. A database that can't be
// asked yet is no error; without a key, or with one that nobody believes, a service must not start.
func (s *Sealer) Begin(ctx context.Context) error {
	if s.every == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	outside, was, err := s.read(ctx)
	if err == nil {
		_, _, err = s.ready(ctx, was, outside)
	}
	switch {
	case isStoreError(err):
		return nil // /readyz says so
	case errors.Is(err, idempotency.ErrRewound):
		return nil // it starts, so that an operator is told what a writer is told
	case err != nil:
		return fmt.Errorf("begin sealing: %w", err)
	}
	return nil
}

func isStoreError(err error) bool {
	err = database.Classify(err)
	return errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrBusy) || errors.Is(err, database.ErrNotMigrated)
}

// Run seals until ctx ends. What goes wrong is logged and tried again: events wait, and are not lost.
func (s *Sealer) Run(ctx context.Context) {
	if s.every == 0 {
		return
	}
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := s.SealAll(ctx)
		switch {
		case err == nil || ctx.Err() != nil:
			said = ""
		case err.Error() != said: // once, and not each second
			said = err.Error()
			s.log.ErrorContext(ctx, "events not sealed", slog.String("service", s.service), slog.Any("error", err))
		}
	}
}

// Finish seals what is there, at the end of a process. What it leaves, the next one seals.
func (s *Sealer) Finish(ctx context.Context) {
	if s.every == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, finishWithin)
	defer cancel()
	if err := s.SealAll(ctx); err != nil {
		s.log.WarnContext(ctx, "events left to be sealed at the next start", slog.String("service", s.service), slog.Any("error", err))
	}
}

// SealAll seals what has been written, in batches.
func (s *Sealer) SealAll(ctx context.Context) error {
	for {
		more, err := s.Seal(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// Seal seals one batch of events. It reports whether there may be more that had been written when it began: the batch is full, or another process has
// sealed. What was written meanwhile waits for the next time, or there would be one batch after the other, of few events each.
func (s *Sealer) Seal(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, sealTimeout)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	// The size comes before the markers: whoever takes some after that moves it, and then this batch is not taken.
	outside, was, err := s.read(ctx)
	if err != nil {
		return false, database.Classify(err)
	}
	signer, last, err := s.ready(ctx, was, outside)
	s.found(ctx, err)
	if err != nil || !was.waiting {
		return false, database.Classify(err)
	}
	edge, err := s.edgeOf(ctx, was, last)
	if err != nil {
		return false, database.Classify(err)
	}
	next := Checkpoint{Origin: s.origin, Number: was.Checkpoints + 1, Previous: digest(last)}
	var signed string
	err = s.db.InTx(ctx, func(tx database.Tx) error {
		var segments []segment
		if segments, more, err = takeSegments(tx, &edge); err != nil {
			return err
		}
		next.Size, next.Root = edge.size, edge.root()
		if signed, err = next.sign(signer); err != nil {
			return err
		}
		return appendSegments(tx, was, segments, next, signed)
	})
	switch {
	case errors.Is(err, errMoved):
		return true, nil // begin again
	case errors.Is(err, errNothing):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("seal events: %w", err)
	}
	s.edge = &edge
	return more, s.keep(next, signed)
}

// keep puts a checkpoint of ours outside.
func (s *Sealer) keep(c Checkpoint, signed string) error {
	if err := s.files.keep(signed); err != nil {
		return err
	}
	s.known, s.kept = c, signed
	return nil
}

// read reads what is outside and then the tree, which is ahead of it at any time.
func (s *Sealer) read(ctx context.Context) (outside string, was tree, err error) {
	if outside, err = s.files.Checkpoint(); err != nil {
		return "", was, err
	}
	was, err = readTree(s.db.Read(ctx))
	return outside, was, err
}

// ready returns what to sign with and the last signed checkpoint, after everything that must hold before more is signed: the key is there, the last
// checkpoint is by one that is believed, and the tree is what the checkpoint outside says of it, which is then replaced by the last.
func (s *Sealer) ready(ctx context.Context, was tree, outside string) (note.Signer, string, error) {
	if err := s.readOrigin(ctx); err != nil {
		return nil, "", err
	}
	signer, public, err := s.files.signer()
	if errors.Is(err, ErrNoKey) {
		signer, public, err = s.firstKey(was, outside, err)
	}
	if err == nil {
		err = s.files.believe(public)
	}
	if err != nil {
		return nil, "", err
	}
	if err := s.compare(ctx, was, outside); err != nil {
		return nil, "", err
	}
	if s.known.Number == was.Checkpoints && s.known.Size == was.Size && s.kept != "" {
		return signer, s.kept, nil // nobody has sealed since
	}
	last, err := readCheckpoint(s.db.Read(ctx), was.Checkpoints)
	if err != nil || last == "" {
		return signer, last, err
	}
	keys, err := s.files.Keys()
	if err != nil {
		return nil, "", err
	}
	c, by, err := OpenCheckpoint(last, keys)
	switch {
	case errors.Is(err, ErrForeignKey):
		return nil, "", fmt.Errorf("the last checkpoint is %w: %s is not in %s; put its public key there if it is yours", ErrForeignKey, by, s.files.KeysFile())
	case err != nil:
		return nil, "", err
	case c.Size != was.Size || c.Number != was.Checkpoints:
		return nil, "", fmt.Errorf("the last checkpoint is of %d leaves, and the tree has %d; einmal audit verify says what else", c.Size, was.Size)
	}
	// Another process has sealed, or this one died between its commit and the file.
	return signer, last, s.keep(c, last)
}

// firstKey makes a key for a log in which nothing is signed yet. For any other a new key would be a foreign one.
func (s *Sealer) firstKey(was tree, outside string, missing error) (note.Signer, string, error) {
	if outside != "" || was.Size > 0 {
		return nil, "", fmt.Errorf("the log of %s is signed, and %w: put the key back, set EINMAL_AUDIT_KEY_FILE, or make another with einmal audit key --create", s.service, missing)
	}
	if _, err := s.files.CreateKey(s.db.Now()); err != nil && !errors.Is(err, fs.ErrExist) { // another service has just made it
		return nil, "", err
	}
	return s.files.signer()
}

// readOrigin reads what this log is called in its checkpoints.
func (s *Sealer) readOrigin(ctx context.Context) (err error) {
	if s.origin == "" {
		s.origin, err = Origin(s.db.Read(ctx), s.service)
	}
	return err
}

// Origin is what the log of a service is called: a database that takes another's place has another name.
func Origin(db *gorm.DB, service string) (string, error) {
	var namespace string
	if err := db.Raw("SELECT namespace FROM installation WHERE id = 1").Row().Scan(&namespace); err != nil {
		return "", fmt.Errorf("read the name of the installation: %w", err)
	}
	return origin(service, namespace), nil
}

func origin(service, namespace string) string { return "einmal/" + service + "/" + namespace }

// edgeOf is the edge of the tree as it was read.
func (s *Sealer) edgeOf(ctx context.Context, was tree, last string) (frontier, error) {
	if s.edge != nil && s.edge.size == was.Size && last == s.kept { // so it is the tree that this process has made
		return *s.edge, nil
	}
	return readFrontier(s.db.Read(ctx), was.Size)
}

var (
	// errMoved means that another process has sealed since the tree was read.
	errMoved = errors.New("another process has sealed meanwhile")

	// errNothing means that another process has taken what was marked.
	errNothing = errors.New("nothing is marked any more")
)

// takeSegments takes what is marked and appends it to the tree. There may be more of it.
func takeSegments(tx database.Tx, edge *frontier) (segments []segment, more bool, err error) {
	leaves, more, err := takeMarked(tx)
	if err != nil {
		return nil, false, err
	}
	if len(leaves) == 0 {
		return nil, false, errNothing
	}
	segments = cut(leaves, edge)
	for _, s := range segments {
		if err := s.isNew(tx.DB); err != nil {
			return nil, false, err
		}
	}
	return segments, more, nil
}

// appendSegments makes the tree a larger one, if it still is as it was.
func appendSegments(tx database.Tx, was tree, segments []segment, c Checkpoint, signed string) error {
	moved := tx.Exec("UPDATE audit_tree SET size = ?, checkpoints = ? WHERE id = 1 AND size = ? AND checkpoints = ?", c.Size, c.Number, was.Size, was.Checkpoints)
	if moved.Error != nil || moved.RowsAffected != 1 {
		return errors.Join(moved.Error, errMoved)
	}
	var rows []any
	for _, s := range segments {
		row, err := s.row()
		if err != nil {
			return err
		}
		rows = append(rows, row...)
	}
	if err := segmentsTable.insert(tx.AtCommit(), rows); err != nil {
		return fmt.Errorf("append leaves: %w", err)
	}
	return tx.AtCommit().Exec("INSERT INTO audit_checkpoints (number, note) VALUES (?, ?)", c.Number, signed).Error
}
