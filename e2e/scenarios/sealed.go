package scenarios

import (
	"fmt"
	"time"

	"github.com/einmal/einmal/e2e/harness"
)

// ServeSealing starts a replica of the tickets service that seals this often, and keeps what is outside the database in a directory; empty: where the
// others of this database do.
func (s *Stage) ServeSealing(databaseURL, auditDir string, every time.Duration) *harness.Service {
	env := []string{fmt.Sprintf("EINMAL_SEAL_EVERY=%s", every)}
	if auditDir != "" {
		env = append(env, "EINMAL_AUDIT_DIR="+auditDir)
	}
	service, err := s.lab.Serve(s.ctx, harness.Settings{Role: "tickets", DatabaseURL: databaseURL, Env: env})
	s.must(err)
	s.services = append(s.services, service)
	return service
}

// AwaitSealed waits until every event is in a leaf.
func (s *Stage) AwaitSealed() {
	s.Await("everything is sealed", func() bool {
		return s.Count("SELECT count(*) FROM unsealed") == 0 && s.Count("SELECT size FROM audit_tree") == s.Count("SELECT count(*) FROM events")
	})
}

// MarkToSeal is a statement that marks each of some events as one to be sealed.
func (s *Stage) MarkToSeal(events string) string {
	list := `'[["' || account_id || '", "' || id || '"]]'`
	if !s.SQLite() {
		list = "CAST(" + list + " AS json)"
	}
	return "INSERT INTO markers (events) SELECT " + list + " FROM " + events
}

// LeafEvent is the event of a leaf.
func (s *Stage) LeafEvent(index int) string {
	return s.Text("SELECT event_id FROM leaves WHERE leaf_index = $1", index)
}

// Unprotect takes away what refuses changes of events on SQLite, as whoever owns the file can.
func (s *Stage) Unprotect() {
	if !s.SQLite() {
		return // the owner of the tables is refused nothing
	}
	for _, table := range []string{"events", "segments", "audit_checkpoints"} {
		s.must(s.db.Change(s.ctx, "DROP TRIGGER "+table+"_no_update", "DROP TRIGGER "+table+"_no_delete"))
	}
}
