package scenarios

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/einmal/einmal/pkg/audit"
)

var auditTamperingIsFound = Scenario{
	Name:    "audit_tampering_is_found",
	Promise: "Whatever is done to the log by who can write the database, and even by who has stolen the key, einmal audit verify names it, and the first event affected.",
	Injects: true,
	run: func(s *Stage) (effects int) {
		service := s.ServeSealing(s.db.URL, "", 50*time.Millisecond)
		for range 3 {
			for range 2 {
				s.Executed("a creation", s.Create(service.URL(), s.NewKey(), s.NewTicket().JSON()))
				effects++
			}
			s.AwaitSealed()
		}
		s.must(service.Terminate())
		s.must(s.db.AuditVerify(s.ctx))
		s.Unprotect()
		var found []string
		for _, t := range s.tamperings() {
			s.tamper(t)
			found = append(found, string(t.kind))
		}
		s.Notef("found, each by its name: %s", strings.Join(found, ", "))
		return effects
	},
}

// tampering is one thing that is done to a log of twelve events.
type tampering struct {
	kind       audit.Kind
	first      string // the first event affected; empty: nothing is left that tells its id, or which is the first
	statements []string
	then       func() // what is done beside that
}

// tamperings are one of each kind.
func (s *Stage) tamperings() []tampering {
	fifth, seventh := s.LeafEvent(5), s.LeafEvent(7)
	const copied = `account_id, 'evt_forged', type, at, principal, agent_run, request_id, operation_id, attempt_id, key_hash, fingerprint, route, effect_key, reference, from_state, to_state`
	reset := []string{
		"DELETE FROM segments", "DELETE FROM audit_checkpoints", "UPDATE audit_tree SET size = 0, checkpoints = 0",
		s.MarkToSeal("events"),
	}
	return []tampering{
		{kind: audit.Changed, first: fifth, statements: []string{
			fmt.Sprintf("UPDATE events SET principal = 'somebody-else' WHERE id IN ('%s', '%s')", fifth, seventh),
		}},
		{kind: audit.Removed, first: fifth, statements: []string{fmt.Sprintf("DELETE FROM events WHERE id = '%s'", fifth)}},
		{kind: audit.Inserted, first: "evt_forged", statements: []string{
			fmt.Sprintf("INSERT INTO events SELECT %s FROM events WHERE id = '%s'", copied, fifth),
		}},
		{kind: audit.CutTail, statements: []string{ // and nothing in the database tells of it
			"DELETE FROM events WHERE id IN (SELECT event_id FROM leaves WHERE leaf_index >= 8)", "DELETE FROM segments WHERE first_index >= 8",
			"DELETE FROM audit_checkpoints WHERE number > 1", "UPDATE audit_tree SET size = 8, checkpoints = 1",
		}},
		{kind: audit.DeletedCheckpoint, statements: []string{"DELETE FROM audit_checkpoints WHERE number = 2"}},
		{kind: audit.ForeignKey, first: s.LeafEvent(0), statements: reset, then: func() { s.sealAnew("") }},
		{kind: audit.Rewritten, statements: append([]string{fmt.Sprintf("UPDATE events SET principal = 'somebody-else' WHERE id = '%s'", fifth)}, reset...), then: func() {
			s.sealAnew(filepath.Join(s.db.AuditDir(), "audit.key"))
		}},
		{kind: audit.ForeignKey, statements: []string{s.signedBySomebody()}},
	}
}

// tamper does it, holds the log against what is outside, and takes it back.
func (s *Stage) tamper(t tampering) {
	var keep, restore []string
	for _, table := range []string{"events", "markers", "segments", "audit_tree", "audit_checkpoints"} {
		columns, into := "*", table
		if table == "segments" { // has others that follow from these
			columns = "first_index, first_hash, events, hashes"
			into += " (" + columns + ")"
		}
		keep = append(keep, "CREATE TABLE kept_"+table+" AS SELECT "+columns+" FROM "+table)
		restore = append(restore, "DELETE FROM "+table, "INSERT INTO "+into+" SELECT * FROM kept_"+table, "DROP TABLE kept_"+table)
	}
	s.must(s.db.Change(s.ctx, append(keep, t.statements...)...))
	s.Struck()
	if t.then != nil {
		t.then()
	}
	exported := filepath.Join(s.db.AuditDir(), "exported.jsonl")
	text, err := s.db.Audit(s.ctx, "export")
	s.must(err)
	s.must(os.WriteFile(exported, []byte(text), 0o600))
	for _, args := range [][]string{nil, {"--file", exported}} {
		out, err := s.db.Audit(s.ctx, "verify", args...)
		s.Check(err != nil, "%s: einmal audit verify %v has found nothing: %s", t.kind, args, out)
		s.Check(strings.Contains(out, string(t.kind)+": ") && strings.Contains(out, "the first event affected is "+t.first), "%s: einmal audit verify %v says %q", t.kind, args, out)
	}
	s.must(s.db.Change(s.ctx, restore...))
	s.must(s.db.AuditVerify(s.ctx))
}

// sealAnew lets a service seal the whole log once more, with a key of its own or one that was stolen.
func (s *Stage) sealAnew(stolen string) {
	dir, err := os.MkdirTemp(filepath.Dir(s.db.AuditDir()), "thief-")
	s.must(err)
	if stolen != "" {
		key, err := os.ReadFile(stolen)
		s.must(err)
		s.must(os.WriteFile(filepath.Join(dir, "audit.key"), key, 0o600))
	}
	service := s.ServeSealing(s.db.URL, dir, 20*time.Millisecond)
	s.AwaitSealed()
	s.must(service.Terminate())
}

// signedBySomebody is a statement that puts the same checkpoint there, with another signature.
func (s *Stage) signedBySomebody() string {
	signed := s.Text("SELECT note FROM audit_checkpoints WHERE number = 2")
	text, _, _ := strings.Cut(signed, "\n\n")
	private, _, err := note.GenerateKey(rand.Reader, "somebody")
	s.must(err)
	signer, err := note.NewSigner(private)
	s.must(err)
	forged, err := note.Sign(&note.Note{Text: text + "\n"}, signer)
	s.must(err)
	return fmt.Sprintf("UPDATE audit_checkpoints SET note = '%s' WHERE number = 2", forged)
}
