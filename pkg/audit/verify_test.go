package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
)

// thief is somebody who may write to the database and has no key.
type thief struct {
	sealed
	ids []string // of events, by leaf
}

// log of ten events, sealed in three batches of 4, 3 and 3.
func newThief(t *testing.T, kind database.Kind) thief {
	s := newSealed(t, kind)
	for _, n := range []int{4, 3, 3} {
		s.record(n)
		s.seal()
	}
	th := thief{sealed: s}
	if err := s.db.Read(t.Context()).Raw("SELECT event_id FROM leaves ORDER BY leaf_index").Scan(&th.ids).Error; err != nil {
		t.Fatal(err)
	}
	return th
}

func (th thief) exec(statement string, args ...any) {
	th.t.Helper()
	if err := th.db.Read(th.t.Context()).Exec(statement, args...).Error; err != nil {
		th.t.Fatal(err)
	}
}

// cut takes events from a leaf on away, and all that tells of them.
func (th thief) cut(from int, checkpoints int) {
	th.single()
	th.exec("DELETE FROM events WHERE id IN (SELECT event_id FROM leaves WHERE leaf_index >= ?)", from)
	th.exec("DELETE FROM segments WHERE first_index >= ?", from)
	th.exec("DELETE FROM audit_checkpoints WHERE number > ?", checkpoints)
	th.exec("UPDATE audit_tree SET size = ?, checkpoints = ?", from, checkpoints)
}

// single takes all segments apart, into one for each leaf.
func (th thief) single() {
	th.t.Helper()
	var leaves []audit.LeafEntry
	for e, err := range audit.Read(th.t.Context(), th.db, "tickets") {
		if err != nil {
			th.t.Fatal(err)
		}
		if e.Leaf != nil {
			leaves = append(leaves, *e.Leaf)
		}
	}
	th.exec("DELETE FROM segments")
	for _, l := range leaves {
		th.segment(l.Index, fmt.Sprintf(`[[%q, %q]]`, l.Account, l.EventID), l.Hashes)
	}
}

func (th thief) segment(first int64, events string, hashes []byte) {
	th.t.Helper()
	th.exec("INSERT INTO segments (first_index, first_hash, events, hashes) VALUES (?, ?, ?, ?)", first, tlog.StoredHashCount(first), events, hashes)
}

// mark marks events as ones to be sealed, as it was done before markers had hashes.
func (th thief) mark(ids ...string) {
	th.t.Helper()
	for _, id := range ids {
		th.exec("INSERT INTO markers (events) VALUES (?)", fmt.Sprintf(`[["acme", %q]]`, id))
	}
}

// reseal seals all events anew, as whoever has made a key of their own would.
func (th thief) reseal(t *testing.T) {
	th.mark(th.ids...)
	th.exec("DELETE FROM segments")
	th.exec("DELETE FROM audit_checkpoints")
	th.exec("UPDATE audit_tree SET size = 0, checkpoints = 0")
	if err := th.replica(t.TempDir()).SealAll(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyFinds(t *testing.T) {
	const gone = "" // nothing is left that tells the event
	cases := []struct {
		name  string
		do    func(t *testing.T, th thief)
		kind  audit.Kind
		first int // leaf of the first event affected; -1: it is in no leaf
		id    func(th thief) string
	}{
		{"a changed row", func(_ *testing.T, th thief) {
			th.exec("UPDATE events SET principal = 'somebody-else' WHERE id IN ?", []string{th.ids[5], th.ids[8]})
		}, audit.Changed, 5, nil},
		{"a changed time", func(_ *testing.T, th thief) {
			th.exec("UPDATE events SET at = ? WHERE id = ?", full.At.Add(-time.Microsecond), th.ids[2])
		}, audit.Changed, 2, nil},
		{"a row of another account's", func(_ *testing.T, th thief) {
			th.exec("UPDATE events SET account_id = 'globex' WHERE id = ?", th.ids[2])
			th.single()
			th.exec("UPDATE segments SET events = ? WHERE first_index = 2", fmt.Sprintf(`[["globex", %q]]`, th.ids[2]))
		}, audit.Changed, 2, nil},
		{"a removed row", func(_ *testing.T, th thief) {
			th.exec("DELETE FROM events WHERE id = ?", th.ids[6])
		}, audit.Removed, 6, nil},
		{"the first row removed", func(_ *testing.T, th thief) {
			th.exec("DELETE FROM events WHERE id = ?", th.ids[0])
		}, audit.Removed, 0, nil},
		{"a removed row with its leaf", func(_ *testing.T, th thief) {
			th.exec("DELETE FROM events WHERE id = ?", th.ids[6])
			th.single()
			th.exec("DELETE FROM segments WHERE first_index = 6")
		}, audit.Removed, 6, func(thief) string { return gone }},
		{"a removed row with its leaf, and the others moved up", func(_ *testing.T, th thief) {
			th.exec("DELETE FROM events WHERE id = ?", th.ids[6])
			th.single()
			th.exec("DELETE FROM segments WHERE first_index = 6")
			for from := int64(7); from < 10; from++ {
				th.exec("UPDATE segments SET first_index = ?, first_hash = ? WHERE first_index = ?", from-1, tlog.StoredHashCount(from-1), from)
			}
		}, audit.Rewritten, 4, nil},
		{"leaves that are told at other places than they have", func(_ *testing.T, th thief) {
			th.exec("UPDATE segments SET first_index = first_index - 1")
		}, audit.Changed, -1, nil},
		{"an event that was to be sealed and is gone", func(_ *testing.T, th thief) {
			th.record(1)
			th.exec("DELETE FROM events WHERE id NOT IN (SELECT event_id FROM leaves)")
		}, audit.Removed, -1, nil},
		{"an inserted row", func(t *testing.T, th thief) {
			th.insert("evt_forged")
		}, audit.Inserted, -1, func(thief) string { return "evt_forged" }},
		{"an inserted row with a leaf at the end", func(t *testing.T, th thief) {
			th.insert("evt_forged")
			th.segment(10, `[["acme", "evt_forged"]]`, make([]byte, tlog.HashSize))
			th.exec("UPDATE audit_tree SET size = 11")
		}, audit.Inserted, 10, func(thief) string { return "evt_forged" }},
		{"an inserted row with the leaf of another", func(t *testing.T, th thief) {
			th.insert("evt_forged")
			th.segment(3, `[["acme", "evt_forged"]]`, make([]byte, tlog.HashSize))
		}, audit.Inserted, 3, func(thief) string { return "evt_forged" }},
		{"an inserted row with the leaf of one that others come after", func(t *testing.T, th thief) {
			th.insert("evt_forged")
			th.segment(5, `[["acme", "evt_forged"]]`, make([]byte, tlog.HashSize))
		}, audit.Inserted, 5, func(thief) string { return "evt_forged" }},
		{"a removed segment with its events", func(t *testing.T, th thief) {
			th.exec("DELETE FROM events WHERE id IN ?", th.ids[4:7])
			th.exec("DELETE FROM segments WHERE first_index = 4")
		}, audit.Removed, 4, func(thief) string { return gone }},
		{"a segment whose events have changed places", func(t *testing.T, th thief) {
			th.exec("UPDATE segments SET events = ? WHERE first_index = 4", fmt.Sprintf(`[["acme", %q], ["acme", %q], ["acme", %q]]`, th.ids[5], th.ids[4], th.ids[6]))
		}, audit.Changed, 4, func(th thief) string { return th.ids[5] }},
		{"a segment whose hashes are gone", func(t *testing.T, th thief) {
			th.exec("UPDATE segments SET hashes = ? WHERE first_index = 4", []byte{})
		}, audit.Changed, 4, nil},
		{"a segment whose hashes are said to be elsewhere", func(t *testing.T, th thief) {
			th.exec("UPDATE segments SET first_hash = first_hash - 1 WHERE first_index = 4")
		}, audit.Changed, 4, nil},
		{"a segment that lists no events", func(t *testing.T, th thief) {
			th.exec("UPDATE segments SET events = '{}' WHERE first_index = 4")
		}, audit.Removed, 4, func(thief) string { return gone }},
		{"a tail that was cut", func(_ *testing.T, th thief) {
			th.cut(8, 3)
		}, audit.CutTail, 8, func(thief) string { return gone }},
		{"a tail that was cut with its checkpoint", func(_ *testing.T, th thief) {
			th.cut(7, 2)
		}, audit.CutTail, 7, func(thief) string { return gone }},
		{"everything cut", func(_ *testing.T, th thief) {
			th.cut(0, 0)
		}, audit.CutTail, 0, func(thief) string { return gone }},
		{"a leaf that was rewritten with its event", func(t *testing.T, th thief) {
			th.exec("UPDATE events SET principal = 'somebody-else' WHERE id = ?", th.ids[5])
			th.rewriteLeaves(t)
		}, audit.Rewritten, 4, nil},
		{"a tree that was sealed anew with another key", func(t *testing.T, th thief) {
			th.reseal(t)
		}, audit.ForeignKey, 0, nil},
		{"a tree that was sealed anew with our key", func(t *testing.T, th thief) {
			th.exec("UPDATE events SET principal = 'somebody-else' WHERE id = ?", th.ids[5])
			outside := th.trust().Outside
			stolen := t.TempDir()
			copyFile(t, th.dir+"/audit.key", stolen+"/audit.key")
			th.dir, th.sealer = stolen, nil
			th.mark(th.ids...)
			th.exec("DELETE FROM segments")
			th.exec("DELETE FROM audit_checkpoints")
			th.exec("UPDATE audit_tree SET size = 0, checkpoints = 0")
			if err := th.replica(stolen).SealAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			if outside == "" {
				t.Fatal("nothing was outside")
			}
		}, audit.Rewritten, 0, nil},
		{"a deleted checkpoint", func(_ *testing.T, th thief) {
			th.exec("DELETE FROM audit_checkpoints WHERE number = 2")
		}, audit.DeletedCheckpoint, 4, nil},
		{"the first checkpoint deleted", func(_ *testing.T, th thief) {
			th.exec("DELETE FROM audit_checkpoints WHERE number = 1")
		}, audit.DeletedCheckpoint, 0, nil},
		{"the last checkpoint deleted", func(_ *testing.T, th thief) {
			th.exec("DELETE FROM audit_checkpoints WHERE number = 3")
		}, audit.DeletedCheckpoint, 7, nil},
		{"the last checkpoint deleted, and not counted any more", func(_ *testing.T, th thief) {
			th.exec("DELETE FROM audit_checkpoints WHERE number = 3")
			th.exec("UPDATE audit_tree SET checkpoints = 2")
		}, audit.DeletedCheckpoint, 7, nil},
		{"a tree that says it is smaller than it is", func(_ *testing.T, th thief) {
			th.exec("UPDATE audit_tree SET size = 9")
		}, audit.Changed, 9, nil},
		{"a tree that counts fewer checkpoints than there are", func(_ *testing.T, th thief) {
			th.exec("UPDATE audit_tree SET checkpoints = 2")
		}, audit.Changed, 9, nil},
		{"a sealed event that is marked as one to be sealed, so that sealing stops", func(_ *testing.T, th thief) {
			th.mark(th.ids[3])
		}, audit.Inserted, -1, func(th thief) string { return th.ids[3] }},
		{"an event that is marked twice, so that sealing stops", func(_ *testing.T, th thief) {
			th.record(1)
			th.exec("INSERT INTO markers (events) SELECT events FROM markers")
		}, audit.Inserted, -1, nil},
		{"a marker that names no event, so that sealing stops", func(_ *testing.T, th thief) {
			th.exec("INSERT INTO markers (events) VALUES ('{}')")
		}, audit.Inserted, -1, func(thief) string { return gone }},
		{"a row that was changed before it was sealed", func(_ *testing.T, th thief) {
			th.record(1)
			th.exec("UPDATE events SET principal = 'somebody-else' WHERE id NOT IN (SELECT event_id FROM leaves)")
		}, audit.Inserted, -1, nil},
		{"a row that was changed before it was sealed, when it is", func(_ *testing.T, th thief) {
			th.record(1)
			th.exec("UPDATE events SET principal = 'somebody-else' WHERE id NOT IN (SELECT event_id FROM leaves)")
			th.seal()
		}, audit.Changed, 10, nil},
		{"a row that was removed before it was sealed, when it would have been", func(_ *testing.T, th thief) {
			th.record(2)
			th.exec("DELETE FROM events WHERE id = (SELECT min(id) FROM events WHERE id NOT IN (SELECT event_id FROM leaves))")
			th.seal()
		}, audit.Removed, 10, nil},
		{"a changed checkpoint", func(_ *testing.T, th thief) {
			th.exec("UPDATE audit_checkpoints SET note = replace(note, 'number 2', 'number 9') WHERE number = 2")
		}, audit.ChangedCheckpoint, 4, nil},
		{"a checkpoint in the place of another", func(_ *testing.T, th thief) {
			th.exec("UPDATE audit_checkpoints SET note = (SELECT note FROM audit_checkpoints WHERE number = 1) WHERE number = 2")
		}, audit.ChangedCheckpoint, 4, nil},
	}
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				th := newThief(t, kind)
				th.whole(10, 0)
				c.do(t, th)
				for name, report := range map[string]audit.Report{"the database": th.verify(), "an exported file": th.verifyExported(t)} {
					first, found := report.First()
					if !found || first.Kind != c.kind {
						t.Fatalf("%s: %+v; want %s first", name, report, c.kind)
					}
					if c.first >= 0 && first.Index != int64(c.first) {
						t.Errorf("%s: first affected is leaf %d, want %d: %+v", name, first.Index, c.first, report.Findings)
					}
					switch {
					case c.id != nil && c.id(th) == gone, c.id == nil && c.first < 0:
					case c.id != nil && first.EventID != c.id(th), c.id == nil && first.EventID != th.leafEvent(c.first):
						t.Errorf("%s: first affected is %q: %+v", name, first.EventID, report.Findings)
					}
				}
			})
		}
	})
}

// leafEvent is the event of a leaf, which may have been sealed since the thief came.
func (th thief) leafEvent(index int) (id string) {
	th.t.Helper()
	if index < len(th.ids) {
		return th.ids[index]
	}
	if err := th.db.Read(th.t.Context()).Raw("SELECT event_id FROM leaves WHERE leaf_index = ?", index).Scan(&id).Error; err != nil {
		th.t.Fatal(err)
	}
	return id
}

// insert adds an event behind the service's back.
func (th thief) insert(id string) {
	th.t.Helper()
	th.exec(fmt.Sprintf(`INSERT INTO events SELECT account_id, '%s', type, at, principal, agent_run, request_id, operation_id, attempt_id,
		key_hash, fingerprint, route, effect_key, reference, from_state, to_state FROM events WHERE id = ?`, id), th.ids[0])
}

// rewriteLeaves makes every leaf that of its event as it is now, and everything above it fit.
func (th thief) rewriteLeaves(t *testing.T) {
	t.Helper()
	var notes []struct {
		Number int64
		Note   string
	}
	if err := th.db.Read(t.Context()).Raw("SELECT number, note FROM audit_checkpoints ORDER BY number").Scan(&notes).Error; err != nil {
		t.Fatal(err)
	}
	th.reseal(t)
	th.exec("DELETE FROM audit_checkpoints")
	for _, n := range notes {
		th.exec("INSERT INTO audit_checkpoints VALUES (?, ?)", n.Number, n.Note)
	}
	th.exec("UPDATE audit_tree SET size = 10, checkpoints = 3")
}

func (s sealed) verifyExported(t *testing.T) audit.Report {
	t.Helper()
	var file bytes.Buffer
	if err := audit.Write(&file, audit.Read(t.Context(), s.db, "tickets")); err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify(audit.ReadFile(&file), s.trust())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestAnExportedFile(t *testing.T) {
	th := newThief(t, database.SQLite)
	var file bytes.Buffer
	if err := audit.Write(&file, audit.Read(t.Context(), th.db, "tickets")); err != nil {
		t.Fatal(err)
	}
	whole := file.String()
	t.Run("is as good as the database", func(t *testing.T) {
		if report := th.verifyExported(t); len(report.Findings) > 0 || report.Leaves != 10 || report.Checkpoints != 3 {
			t.Errorf("%+v", report)
		}
	})
	t.Run("of one service is not taken for another's, whose key it may be signed with", func(t *testing.T) {
		trust := th.trust()
		trust.Outside = ""
		for service, is := range map[string]bool{"tickets": true, "payments": false, "ticket": false} {
			trust.Service = service
			if _, err := audit.Verify(audit.ReadFile(strings.NewReader(whole)), trust); is != (err == nil) {
				t.Errorf("%s: %v", service, err)
			}
		}
	})
	t.Run("that was cut is not read as a shorter one", func(t *testing.T) {
		lines := strings.SplitAfter(whole, "\n")
		for n := range len(lines) - 2 {
			if report, err := audit.Verify(audit.ReadFile(strings.NewReader(strings.Join(lines[:n], ""))), th.trust()); err == nil {
				t.Errorf("%d lines: %+v", n, report)
			}
		}
	})
	t.Run("is that of all events, also of one whose text is no UTF-8", func(t *testing.T) {
		odd := newThief(t, database.SQLite) // which keeps it
		err := odd.db.InTx(t.Context(), func(tx database.Tx) error {
			e := event(idempotency.Denied)
			e.Route = "POST /v1/\xc3\xff/x"
			return odd.log.Record(tx, e)
		})
		if err != nil {
			t.Fatal(err)
		}
		odd.seal()
		if report := odd.verifyExported(t); len(report.Findings) > 0 || report.Leaves != 11 {
			t.Errorf("%+v", report)
		}
	})
	t.Run("whose lines are in another order is not read, since what is signed would come too late to be held against", func(t *testing.T) {
		forged := newThief(t, database.SQLite)
		forged.exec("UPDATE events SET principal = 'somebody-else' WHERE id = ?", forged.ids[5])
		forged.rewriteLeaves(t)
		forged.record(1)
		var file bytes.Buffer
		if err := audit.Write(&file, audit.Read(t.Context(), forged.db, "tickets")); err != nil {
			t.Fatal(err)
		}
		part := map[string]string{}
		for line := range strings.Lines(file.String()) {
			name, _, _ := strings.Cut(strings.TrimPrefix(line, `{"`), `"`)
			part[name] += line
		}
		log, checkpoints, leaves, loose, end := part["log"], part["checkpoint"], part["leaf"], part["loose"], part["end"]
		both := strings.TrimSuffix(log, "}\n") + "," + strings.TrimPrefix(end, "{")
		for name, text := range map[string]string{
			"checkpoints last": log + leaves + loose + checkpoints + end, "log last": checkpoints + leaves + loose + end + log, "no log": checkpoints + leaves + loose + end,
			"two files": file.String() + file.String(), "more after the end": file.String() + loose, "two members in a line": both + checkpoints + leaves + loose + end, "a line of nothing": log + "{}\n" + end,
		} {
			trust := forged.trust()
			trust.Outside = ""
			if report, err := audit.Verify(audit.ReadFile(strings.NewReader(text)), trust); err == nil || !strings.Contains(err.Error(), "not one log") {
				t.Errorf("%s: %+v, error %v", name, report, err)
			}
		}
	})
	t.Run("in which leaves are told at other places than they have is not as it was signed", func(t *testing.T) {
		moved := regexp.MustCompile(`"index":\d+`).ReplaceAllStringFunc(whole, func(member string) string {
			index, err := strconv.Atoi(strings.TrimPrefix(member, `"index":`))
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf(`"index":%d`, index-1)
		})
		report, err := audit.Verify(audit.ReadFile(strings.NewReader(moved)), th.trust())
		if err != nil || len(report.Findings) == 0 || report.Findings[0].Kind != audit.Changed || report.Findings[0].Index != -1 {
			t.Errorf("%+v, %v", report, err)
		}
	})
	t.Run("in which anything stands that no release writes is not read", func(t *testing.T) {
		text := strings.Replace(whole, `"account":`, `"balance":1,"account":`, 1)
		if report, err := audit.Verify(audit.ReadFile(strings.NewReader(text)), th.trust()); err == nil {
			t.Errorf("%+v", report)
		}
	})
}

// The spelling of a leaf never changes: a log that was signed years ago must still verify.
func TestEventIsSpelledAsEver(t *testing.T) {
	e := audit.Event{
		Version: 1, ID: "evt_01", Account: "acme", Type: idempotency.Completed, At: audit.Time(time.Date(2026, 5, 6, 7, 8, 9, 120000000, time.UTC)),
		Principal: "demo-agent", AgentRun: "run-1", RequestID: "req-1", OperationID: "op_1", AttemptID: "att_1", KeyHash: "00ff",
		Fingerprint: "v1:ab", Route: "POST /v1/tickets/ü\"<", EffectKey: "ef", Reference: "pi_1", From: idempotency.Queued, To: idempotency.Succeeded,
	}
	golden, err := os.ReadFile("testdata/event_v1.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(e.Canonical()); got != strings.TrimSuffix(string(golden), "\n") {
		t.Errorf("spelled\n%s\nwant\n%s", got, golden)
	}
	least := audit.Event{Version: 1, ID: "evt_02", Account: "acme", Type: idempotency.Denied}
	if got, want := string(least.Canonical()), `{"account":"acme","at":"0001-01-01T00:00:00.000000Z","id":"evt_02","type":"denied","v":1}`; got != want {
		t.Errorf("spelled\n%s\nwant\n%s", got, want)
	}
	if got := string(audit.Event{ID: "evt_03", Reference: "\xff"}.Canonical()); !strings.Contains(got, `"reference":"\ufffd"`) && !strings.Contains(got, "\uFFFD") {
		t.Errorf("what is no UTF-8 is spelled %s", got)
	}
}

// What is written by hand is what a general encoder makes of it and canonicalises.
func TestEventIsSpelledAsRFC8785Says(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string { return rapid.String().Draw(t, name) }
		e := audit.Event{
			Version: rapid.IntRange(1, 99).Draw(t, "v"), ID: text("id"), Account: text("account"), Type: idempotency.EventType(text("type")),
			At: audit.Time(time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "at"))), Principal: text("principal"), AgentRun: text("agent_run"), RequestID: text("request_id"),
			OperationID: text("operation_id"), AttemptID: text("attempt_id"), KeyHash: text("key_hash"), Fingerprint: idempotency.Fingerprint(text("fingerprint")),
			Route: text("route"), EffectKey: text("effect_key"), Reference: text("reference"), From: idempotency.State(text("from")), To: idempotency.State(text("to")),
		}
		if e.ID == "" || e.Account == "" || e.Type == "" {
			return // no event lacks them
		}
		general, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := (*jsontext.Value)(&general).Canonicalize(); err != nil {
			t.Fatal(err)
		}
		if got := e.Canonical(); !bytes.Equal(got, general) {
			t.Fatalf("spelled\n%s\nwant\n%s", got, general)
		}
	})
}

func TestReceipt(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		th := newThief(t, kind)
		err := th.db.InTx(t.Context(), func(tx database.Tx) error {
			doubtful := event(idempotency.UnknownEvent)
			doubtful.To = idempotency.Unknown
			return th.log.Record(tx, event(idempotency.Attempted), doubtful)
		})
		if err != nil {
			t.Fatal(err)
		}
		th.seal()
		shown := []byte(`{"id":"op_1","state":"succeeded","agent_run":"run-1"}`)
		receipt, err := th.sealer.Receipt(t.Context(), "acme", "op_1", shown)
		if err != nil {
			t.Fatal(err)
		}
		t.Run("proves its events with the public key alone, however the log grows", func(t *testing.T) {
			c, err := receipt.Verify(th.trust().Keys)
			if err != nil || c.Size != 12 || len(receipt.Events) != 12 {
				t.Errorf("%d events at size %d, error %v", len(receipt.Events), c.Size, err)
			}
		})
		t.Run("seals what is not sealed yet", func(t *testing.T) {
			th.record(1)
			r, err := th.sealer.Receipt(t.Context(), "acme", "op_1", shown)
			if err != nil || len(r.Events) != 13 {
				t.Fatalf("%v, %v", r, err)
			}
			if _, err := r.Verify(th.trust().Keys); err != nil {
				t.Error(err)
			}
		})
		t.Run("of another account's operation has no events", func(t *testing.T) {
			r, err := th.sealer.Receipt(t.Context(), "globex", "op_1", shown)
			if err != nil || len(r.Events) != 0 {
				t.Errorf("%v, %v", r, err)
			}
		})
		other := audit.Files{Dir: t.TempDir()}
		foreign, err := other.CreateKey(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for name, forge := range map[string]func(r *audit.Receipt) audit.Keys{
			"with a changed event":                func(r *audit.Receipt) audit.Keys { r.Events[3].Principal = "x"; return th.trust().Keys },
			"with an event left out of its lists": func(r *audit.Receipt) audit.Keys { r.Events = r.Events[1:]; return th.trust().Keys },
			"with an event at the place of another": func(r *audit.Receipt) audit.Keys {
				r.Events[3], r.Events[4] = r.Events[4], r.Events[3]
				return th.trust().Keys
			},
			"with one event twice": func(r *audit.Receipt) audit.Keys {
				r.Events[4], r.LeafIndexes[4], r.Proofs[4] = r.Events[3], r.LeafIndexes[3], r.Proofs[3]
				return th.trust().Keys
			},
			"of another operation": func(r *audit.Receipt) audit.Keys { r.Operation = []byte(`{"id":"op_2"}`); return th.trust().Keys },
			"of an operation that goes on, though it has ended": func(r *audit.Receipt) audit.Keys {
				r.Operation = []byte(`{"id":"op_1","state":"unknown","agent_run":"run-1"}`)
				return th.trust().Keys
			},
			"of an operation that has ended with another reference, though no event tells any": func(r *audit.Receipt) audit.Keys {
				r.Operation = []byte(`{"id":"op_1","state":"succeeded","agent_run":"run-1","reference":"pi_x"}`)
				return th.trust().Keys
			},
			"with an index outside": func(r *audit.Receipt) audit.Keys { r.LeafIndexes[12] = 13; return th.trust().Keys },
			"with a changed checkpoint": func(r *audit.Receipt) audit.Keys {
				r.Checkpoint = strings.Replace(r.Checkpoint, "\n13\n", "\n14\n", 1)
				return th.trust().Keys
			},
			"without events": func(r *audit.Receipt) audit.Keys {
				r.Events, r.LeafIndexes, r.Proofs = nil, nil, nil
				return th.trust().Keys
			},
			"by a key that is not believed":      func(*audit.Receipt) audit.Keys { return audit.Keys{foreign} },
			"by a key that only it itself names": func(r *audit.Receipt) audit.Keys { r.PublicKey = foreign; return audit.Keys{foreign} },
		} {
			t.Run(name+" it proves nothing", func(t *testing.T) {
				forged, err := th.sealer.Receipt(t.Context(), "acme", "op_1", shown)
				if err != nil {
					t.Fatal(err)
				}
				keys := forge(forged)
				if _, err := forged.Verify(keys); !errors.Is(err, audit.ErrNotProven) {
					t.Errorf("error %v", err)
				}
			})
		}
		t.Run("shows the name of what goes on before an event tells it, and no other after that", func(t *testing.T) {
			shows := func(reference string, tell ...idempotency.Event) error {
				err := th.db.InTx(t.Context(), func(tx database.Tx) error {
					for i := range tell {
						tell[i].OperationID = "op_open"
					}
					return th.log.Record(tx, tell...)
				})
				if err != nil {
					t.Fatal(err)
				}
				r, err := th.sealer.Receipt(t.Context(), "acme", "op_open", fmt.Appendf(nil, `{"id":"op_open","state":"running","agent_run":"run-1","reference":%q}`, reference))
				if err != nil {
					t.Fatal(err)
				}
				_, err = r.Verify(th.trust().Keys)
				return err
			}
			begun, sent, goesOn := event(idempotency.Attempted), event(idempotency.Sent), event(idempotency.AcceptedEvent)
			begun.Reference, sent.Reference, goesOn.Reference = "", "", "pi_1"
			begun.To, sent.To, goesOn.To = "", idempotency.Running, idempotency.Running
			if err := shows("pi_1", begun, sent); err != nil {
				t.Error(err)
			}
			if err := shows("pi_1", goesOn); err != nil {
				t.Error(err)
			}
			if err := shows("pi_2"); !errors.Is(err, audit.ErrNotProven) {
				t.Error(err)
			}
		})
	})
}
