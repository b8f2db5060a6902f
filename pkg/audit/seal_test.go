package audit_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
)

// sealed is a log with what is outside its database.
type sealed struct {
	t      testing.TB
	url    string
	db     *database.DB
	log    *audit.Log
	dir    string
	sealer *audit.Sealer
}

func newSealed(t testing.TB, kind database.Kind) sealed {
	t.Helper()
	url := dbtest.URL(t, kind)
	s := sealed{t: t, url: url, db: dbtest.Connect(t, url, database.Options{}), dir: t.TempDir()}
	s.log = openOn(t, s.db)
	s.sealer = s.replica(s.dir)
	return s
}

// replica is another process that seals the same log, by what is in a directory.
func (s sealed) replica(dir string) *audit.Sealer {
	s.t.Helper()
	sealer, err := audit.NewSealer(dbtest.Connect(s.t, s.url, database.Options{}), slog.New(slog.DiscardHandler), "tickets",
		audit.Sealing{AuditDir: dir, SealEvery: time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	return sealer
}

// record appends so many events, of one operation each.
func (s sealed) record(n int) {
	s.t.Helper()
	err := s.db.InTx(s.t.Context(), func(tx database.Tx) error { return s.recordIn(tx, n) })
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s sealed) recordIn(tx database.Tx, n int) error {
	events := slices.Repeat([]idempotency.Event{full}, n)
	for i := range events {
		events[i].At = tx.Now
	}
	return s.log.Record(tx, events...)
}

func (s sealed) seal() {
	s.t.Helper()
	if err := s.sealer.SealAll(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s sealed) files() audit.Files { return audit.Files{Dir: s.dir, Service: "tickets"} }

// trust is what is in the directory.
func (s sealed) trust() audit.Trust {
	s.t.Helper()
	keys, err := s.files().Keys()
	if err != nil {
		s.t.Fatal(err)
	}
	outside, err := s.files().Checkpoint()
	if err != nil {
		s.t.Fatal(err)
	}
	return audit.Trust{Keys: keys, Outside: outside}
}

func (s sealed) verify() audit.Report {
	s.t.Helper()
	report, err := audit.Verify(audit.Read(s.t.Context(), s.db, "tickets"), s.trust())
	if err != nil {
		s.t.Fatal(err)
	}
	return report
}

// whole ends the test unless the log has so many leaves, and nothing is wrong with it.
func (s sealed) whole(leaves, pending int64) {
	s.t.Helper()
	report := s.verify()
	if len(report.Findings) > 0 || report.Leaves != leaves || report.Pending != pending {
		s.t.Fatalf("%+v; want %d leaves, %d pending and nothing found", report, leaves, pending)
	}
}

func TestSeal(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("takes every committed event once, whatever the sizes of batches", func(t *testing.T) {
			s := newSealed(t, kind)
			want := int64(0)
			for _, n := range []int{1, 1, 2, 3, 700, 1} {
				s.record(n)
				want += int64(n)
				s.whole(want-int64(n), int64(n))
				s.seal()
				s.whole(want, 0)
			}
		})
		t.Run("finds an event whose transaction commits after later ones were sealed", func(t *testing.T) {
			if kind == database.SQLite {
				t.Skip("it has one writer: nobody commits while a transaction is open")
			}
			s := newSealed(t, kind)
			began, others := make(chan struct{}), make(chan struct{})
			late := make(chan error)
			go func() {
				late <- s.db.InTx(context.Background(), func(tx database.Tx) error {
					if err := s.recordIn(tx, 3); err != nil {
						return err
					}
					close(began)
					<-others
					return nil
				})
			}()
			<-began
			s.record(2)
			s.seal()
			s.whole(2, 0)
			close(others)
			if err := <-late; err != nil {
				t.Fatal(err)
			}
			s.whole(2, 3)
			s.seal()
			s.whole(5, 0)
		})
		t.Run("leaves out what was rolled back", func(t *testing.T) {
			s := newSealed(t, kind)
			no := errors.New("no")
			if err := s.db.InTx(t.Context(), func(tx database.Tx) error { return errors.Join(s.recordIn(tx, 2), no) }); !errors.Is(err, no) {
				t.Fatal(err)
			}
			s.record(1)
			s.seal()
			s.whole(1, 0)
		})
		t.Run("is done by several processes at once, each event by one of them", func(t *testing.T) {
			s := newSealed(t, kind)
			s.record(1)
			s.seal() // so that there is a key
			replicas := []*audit.Sealer{s.sealer, s.replica(s.dir), s.replica(s.dir)}
			var working sync.WaitGroup
			for _, r := range replicas {
				working.Go(func() {
					for range 20 {
						if _, err := r.Seal(t.Context()); err != nil && !errors.Is(err, database.ErrBusy) && !errors.Is(err, database.ErrSerialization) {
							t.Error(err)
						}
					}
				})
			}
			for range 20 {
				s.record(30)
			}
			working.Wait()
			s.seal()
			s.whole(601, 0)
		})
		t.Run("begins another batch after a full one only, and not for what has come meanwhile", func(t *testing.T) {
			s := newSealed(t, kind)
			for _, step := range []struct {
				events int
				more   bool
			}{{3, false}, {16 * 1024, true}, {0, false}} { // sixteen share a marker, 1 024 markers are a batch
				s.record(step.events)
				if more, err := s.sealer.Seal(t.Context()); err != nil || more != step.more {
					t.Errorf("%d events: more: %t, error %v", step.events, more, err)
				}
			}
			s.whole(3+16*1024, 0)
		})
		t.Run("goes on past events that are gone, however many, and they stay missed", func(t *testing.T) {
			th := thief{sealed: newSealed(t, kind)}
			const many = 1500 // more than a batch
			for range many {
				th.record(1)
			}
			th.exec("DELETE FROM events")
			th.record(1)
			th.seal()
			report := th.verify()
			if first, _ := report.First(); first.Kind != audit.Removed || first.Index != 0 || first.EventID == "" || first.More != many-1 || report.Leaves != many+1 || report.Pending != 0 {
				t.Errorf("%+v", report)
			}
		})
		for name, forge := range map[string]func(th thief){
			"names no event":          func(th thief) { th.exec("INSERT INTO markers (events) VALUES ('[]')") },
			"is no list":              func(th thief) { th.exec("INSERT INTO markers (events) VALUES ('7')") },
			"marks what is sealed":    func(th thief) { th.mark(th.ids[0]) },
			"marks what is marked":    func(th thief) { th.exec("INSERT INTO markers (events) SELECT events FROM markers") },
			"has a hash that is none": func(th thief) { th.exec(`INSERT INTO markers (events) VALUES ('[["acme", "evt_forged", "none"]]')`) },
		} {
			t.Run("says so as long as there is a marker that "+name+", and goes on when it is gone", func(t *testing.T) {
				th := newThief(t, kind)
				th.record(1)
				forge(th)
				_, err := th.sealer.Seal(t.Context())
				if err == nil || !strings.Contains(err.Error(), "nothing is sealed as long as it is there") {
					t.Errorf("error %v", err)
				}
				if report := th.verify(); len(report.Findings) == 0 {
					t.Error("verify finds nothing")
				}
				th.exec("DELETE FROM markers WHERE id > (SELECT min(id) FROM markers)")
				th.seal()
				th.whole(11, 0)
			})
		}
		t.Run("writes the checkpoint outside, also one that another process has signed", func(t *testing.T) {
			s := newSealed(t, kind)
			s.record(2)
			s.seal()
			elsewhere := t.TempDir() // another machine, which was given the keys
			for _, name := range []string{"audit.key", "audit.pub"} {
				copyFile(t, filepath.Join(s.dir, name), filepath.Join(elsewhere, name))
			}
			if err := s.replica(elsewhere).SealAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			there, err := audit.Files{Dir: elsewhere, Service: "tickets"}.Checkpoint()
			if here := s.trust().Outside; err != nil || here == "" || there != here {
				t.Errorf("outside there is %q, here %q, error %v", there, here, err)
			}
		})
		t.Run("goes on where a process died between its commit and the file", func(t *testing.T) {
			s := newSealed(t, kind)
			s.record(2)
			s.seal()
			before := s.trust().Outside
			s.record(2)
			s.seal()
			if err := os.WriteFile(s.files().CheckpointFile(), []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			s.sealer = s.replica(s.dir)
			s.record(1)
			s.seal()
			s.whole(5, 0)
		})
	})
}

// A trigger moves the tree between the look at it and the seal, where no test comes between them.
func TestATreeThatMovesMeanwhile(t *testing.T) {
	s := newSealed(t, database.SQLite)
	s.record(2)
	exec(t, s.db, "CREATE TRIGGER moves AFTER DELETE ON markers BEGIN UPDATE audit_tree SET size = size + 1; END")
	if more, err := s.sealer.Seal(t.Context()); err != nil || !more {
		t.Errorf("more: %t, error %v; want to begin again", more, err)
	}
	s.whole(0, 2)
	exec(t, s.db, "DROP TRIGGER moves")
	s.seal()
	s.whole(2, 0)
}

func TestKeys(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("a new log gets one that nobody else may read", func(t *testing.T) {
			s := newSealed(t, kind)
			if err := s.sealer.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(filepath.Join(s.dir, "audit.key"))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			if keys := s.trust().Keys; len(keys) != 1 {
				t.Errorf("%d public keys, want 1", len(keys))
			}
		})
		t.Run("a signed log whose key is gone is not begun", func(t *testing.T) {
			s := newSealed(t, kind)
			s.record(1)
			s.seal()
			if err := os.Remove(filepath.Join(s.dir, "audit.key")); err != nil {
				t.Fatal(err)
			}
			s.record(1)
			for _, err := range []error{s.replica(s.dir).Begin(t.Context()), s.replica(t.TempDir()).Begin(t.Context())} {
				if !errors.Is(err, audit.ErrNoKey) {
					t.Errorf("error %v", err)
				}
			}
			s.whole(1, 1)
		})
		t.Run("one that others may read is refused, and not shown", func(t *testing.T) {
			s := newSealed(t, kind)
			s.record(1)
			s.seal()
			path := filepath.Join(s.dir, "audit.key")
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
			private, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			err = s.replica(s.dir).Begin(t.Context())
			if err == nil || !strings.Contains(err.Error(), "chmod 600") || strings.Contains(err.Error(), strings.TrimSpace(string(private))) {
				t.Errorf("error %v", err)
			}
		})
		t.Run("one that is mounted may be read by its group, and by nobody else", func(t *testing.T) {
			s := newSealed(t, kind)
			s.record(1)
			s.seal()
			mounted := filepath.Join(t.TempDir(), "key")
			copyFile(t, filepath.Join(s.dir, "audit.key"), mounted)
			sealer, err := audit.NewSealer(s.db, slog.New(slog.DiscardHandler), "tickets", audit.Sealing{AuditDir: s.dir, KeyFile: mounted, SealEvery: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			for mode, want := range map[os.FileMode]bool{0o400: true, 0o440: true, 0o444: false, 0o460: false} {
				if err := os.Chmod(mounted, mode); err != nil {
					t.Fatal(err)
				}
				if err := sealer.Begin(t.Context()); (err == nil) != want {
					t.Errorf("mode %o: error %v", mode, err)
				}
			}
		})
		t.Run("a key of somebody else's is refused", func(t *testing.T) {
			s := newSealed(t, kind)
			s.record(1)
			s.seal()
			other := audit.Files{Dir: t.TempDir(), Service: "tickets"}
			if _, err := other.CreateKey(time.Now()); err != nil {
				t.Fatal(err)
			}
			if err := s.replica(other.Dir).Begin(t.Context()); !errors.Is(err, audit.ErrForeignKey) {
				t.Errorf("error %v", err)
			}
		})
		t.Run("rotated, the next batch is signed by the new one, and all are believed", func(t *testing.T) {
			s := newSealed(t, kind)
			s.record(1)
			s.seal()
			before := s.trust()
			public, err := s.files().RotateKey(time.Now())
			if err != nil {
				t.Fatal(err)
			}
			s.record(1)
			s.seal()
			s.whole(2, 0)
			if keys := s.trust().Keys; len(keys) != 2 || keys[1] != public {
				t.Errorf("%q is believed, want two of which %q is the second", keys, public)
			}
			if _, _, err := audit.OpenCheckpoint(s.trust().Outside, before.Keys); !errors.Is(err, audit.ErrForeignKey) {
				t.Errorf("the old key opens what the new one has signed: %v", err)
			}
		})
	})
}

// Whoever could read a file can read the one that takes its place, and nobody else, also when an operator's root has written it.
func TestFilesKeepTheirReaders(t *testing.T) {
	const somebody = 4711
	files := audit.Files{Dir: t.TempDir(), Service: "tickets", KeyFile: filepath.Join(t.TempDir(), "key")}
	asRoot := os.Geteuid() == 0
	if asRoot {
		if err := errors.Join(os.Chown(files.Dir, somebody, somebody), os.Chown(filepath.Dir(files.KeyFile), somebody, somebody)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(path string, mode os.FileMode) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; info.Mode().Perm() != mode || asRoot && owner != somebody {
			t.Errorf("%s has the mode %o and belongs to %d", path, info.Mode().Perm(), owner)
		}
	}
	if _, err := files.CreateKey(time.Now()); err != nil {
		t.Fatal(err)
	}
	check(files.KeyFile, 0o600)
	check(files.KeysFile(), 0o644)
	if err := os.Chmod(files.KeyFile, 0o440); err != nil {
		t.Fatal(err)
	}
	if _, err := files.RotateKey(time.Now()); err != nil {
		t.Fatal(err)
	}
	check(files.KeyFile, 0o440)
	check(files.KeysFile(), 0o644)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
