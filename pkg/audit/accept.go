package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// ErrNothingToAccept means that the database is what the checkpoint outside says of it.
var ErrNothingToAccept = errors.New("the database is not older than the checkpoint outside it")

// Accept goes on with a database that Guard refuses. First, in one transaction, doubt does what must be done about effects that may have happened in the
// time which is forgotten. Then the checkpoint of that time is set aside, under the path that is returned: the next one begins where the database is. Services that
// read the same directory notice within a second.
func (s *Sealer) Accept(ctx context.Context, doubt func(tx database.Tx) error) (setAside string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readOrigin(ctx); err != nil {
		return "", database.Classify(err)
	}
	outside, was, err := s.read(ctx)
	if err != nil {
		return "", database.Classify(err)
	}
	switch err := s.compare(ctx, was, outside); {
	case err == nil:
		return "", ErrNothingToAccept
	case !errors.Is(err, idempotency.ErrRewound):
		return "", err
	}
	keys, err := s.files.Keys()
	if err != nil {
		return "", err
	}
	forgotten, _, err := OpenCheckpoint(outside, keys)
	if err != nil {
		return "", err
	}
	if err := s.db.InTx(ctx, doubt); err != nil {
		return "", fmt.Errorf("accept: %w", err)
	}
	last, err := readCheckpoint(s.db.Read(ctx), was.Checkpoints)
	if err != nil {
		return "", database.Classify(err)
	}
	if setAside, err = s.files.setAside(forgotten); err != nil {
		return "", fmt.Errorf("accept: %w", err)
	}
	if last == "" { // nothing was ever sealed in it
		return setAside, nil
	}
	return setAside, s.files.keep(last)
}
