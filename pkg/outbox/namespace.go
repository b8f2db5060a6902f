package outbox

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/einmal/einmal/pkg/database"
)

// namespace is the name of this installation in its effect keys: a setting, or else the one that was made together with the database.
// Two installations that share a target must not share it, or one takes the other's effects for its own.
type namespace struct {
	known atomic.Pointer[string]
}

func newNamespace(setting string) *namespace {
	n := &namespace{}
	if setting != "" {
		n.known.Store(&setting)
	}
	return n
}

// of returns the name; the database's never changes, so it is read once.
func (n *namespace) of(tx database.Tx) (string, error) {
	if known := n.known.Load(); known != nil {
		return *known, nil
	}
	var stored []string
	err := tx.Table("installation").Pluck("namespace", &stored).Error
	if err == nil && len(stored) != 1 {
		err = errors.New("this database has none: migrate it, or name one")
	}
	if err != nil {
		return "", fmt.Errorf("read namespace: %w", err)
	}
	n.known.Store(&stored[0])
	return stored[0], nil
}
