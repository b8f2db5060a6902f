package agent_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/einmal/einmal/pkg/agent"
	"github.com/einmal/einmal/pkg/problem"
)

// written is a journal of several entries, as an agent has written it.
func written(t *testing.T) (data []byte) {
	t.Helper()
	w := newWork(t, newTarget(t, done("executed"), lost, lost, final(problem.TicketClosed)))
	for i := range 3 {
		if _, err := w.do(fmt.Sprintf(`{"step":"step-%d","path":"/v1/tickets","body":{"title":"a\nb \u0000 ö"}}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// bounds are the offsets at which records end.
func bounds(data []byte) (ends []int) {
	for i, b := range data {
		if b == '\n' {
			ends = append(ends, i+1)
		}
	}
	return ends
}

func TestAJournalCutShort(t *testing.T) {
	data := written(t)
	ends := bounds(data)
	for size := range data {
		for _, zeros := range []int{0, 1, 512} {
			whole, records := 0, 0
			for i, end := range ends {
				if end <= size {
					whole, records = end, i
				}
			}
			torn := append(bytes.Clone(data[:size]), make([]byte, zeros)...)
			gotRecords, gotWhole, err := agent.Scan(torn)
			if err != nil || gotRecords != records || gotWhole != whole {
				t.Fatalf("cut at byte %d, and %d zeros: %d records, %d bytes, %v; want %d records, %d bytes", size, zeros, gotRecords, gotWhole, err, records, whole)
			}
		}
	}
	t.Run("is mended when it is opened, and goes on", func(t *testing.T) {
		last := ends[len(ends)-2]
		var tails [][]byte
		for size := last; size < len(data); size += 13 { // each is synced: the rest is the same cut, seen above
			tails = append(tails, append(bytes.Clone(data[last:size]), 0, 0, 0))
		}
		// One that is longer than what is written next, and of which only the end has reached the disk.
		tails = append(tails, append(append(make([]byte, 64), bytes.Repeat([]byte("x"), 4096)...), '\n'))
		for _, tail := range tails {
			path := filepath.Join(t.TempDir(), "journal")
			write(t, path, append(bytes.Clone(data[:last]), tail...))
			journal, err := agent.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if cut := journal.Cut(); cut != len(tail) {
				t.Errorf("%d bytes were cut, want %d", cut, len(tail))
			}
			want, err := agent.Entries(data[:last])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, journal.Entries(), unexported); diff != "" {
				t.Fatalf("after a tail of %d bytes (-want +got):\n%s", len(tail), diff)
			}
			if err := agent.Note(journal, 0, agent.Budget{Attempts: 7}); err != nil {
				t.Fatal(err)
			}
			journal.Close()
			entries, err := agent.Read(path)
			if err != nil || entries[0].Budget.Attempts != 7 {
				t.Fatalf("after a tail of %d bytes and another record: %v", len(tail), err)
			}
		}
	})
}

var unexported = cmpopts.IgnoreUnexported(agent.Entry{})

func TestADamagedJournal(t *testing.T) {
	data := written(t)
	ends := bounds(data)
	t.Run("is refused and left as it is, wherever a bit in it has changed", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "journal")
		for at := range ends[len(ends)-2] {
			damaged := bytes.Clone(data)
			damaged[at] ^= 4
			_, _, err := agent.Scan(damaged)
			want := agent.ErrDamaged
			switch {
			case at == len(agent.Header)-2: // the version
				want = agent.ErrOtherRelease
			case at < len(agent.Header):
				want = agent.ErrNotAJournal
			}
			if !errors.Is(err, want) {
				t.Fatalf("byte %d changed: got %v, want %v", at, err, want)
			}
			if at%97 != 0 { // a few are opened
				continue
			}
			write(t, path, damaged)
			if _, err := agent.Open(path); !errors.Is(err, want) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "Nothing was changed") {
				t.Fatalf("got %v, want %v with the file and what to do", err, want)
			}
			if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, damaged) {
				t.Fatalf("the file was changed, %v", err)
			}
		}
	})
	for name, change := range map[string]func() []byte{
		"a record that is missing":     func() []byte { return append(bytes.Clone(data[:ends[2]]), data[ends[3]:]...) },
		"a record that is there twice": func() []byte { return append(bytes.Clone(data[:ends[3]]), data[ends[2]:]...) },
		"zeros in its middle": func() []byte {
			return append(append(bytes.Clone(data[:ends[2]]), make([]byte, 64)...), data[ends[2]:]...)
		},
		"its last record, changed later": func() []byte { return bytes.Replace(data, data[len(data)-9:], []byte("0000000}\n"), 1) },
		"a record that says nothing": func() []byte {
			return append(bytes.Clone(data[:ends[1]]), agent.Line(`{"n":2,"entry":1,"at":"2026-01-01T00:00:00Z"}`)...)
		},
		"an answer to no attempt": func() []byte {
			return append(bytes.Clone(data[:ends[1]]), agent.Line(`{"n":2,"entry":1,"at":"2026-01-01T00:00:00Z","answer":{"reading":"finished"}}`)...)
		},
		"a record of an entry that is not there": func() []byte {
			return append(bytes.Clone(data[:ends[1]]), agent.Line(`{"n":2,"entry":9,"at":"2026-01-01T00:00:00Z","attempt":1}`)...)
		},
	} {
		t.Run("is refused with "+name, func(t *testing.T) {
			if _, err := agent.Entries(change()); !errors.Is(err, agent.ErrDamaged) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	t.Run("leaves the file of somebody else alone", func(t *testing.T) {
		for _, text := range []string{"x", "#!/bin/sh\n", "einmal agent journal of mine\n", "no line feed, as a torn record has none"} {
			path := filepath.Join(t.TempDir(), "notes")
			write(t, path, []byte(text))
			if _, err := agent.Open(path); !errors.Is(err, agent.ErrNotAJournal) {
				t.Errorf("%q: got %v", text, err)
			}
			if left, err := os.ReadFile(path); err != nil || string(left) != text {
				t.Errorf("%q has become %q, %v", text, left, err)
			}
		}
	})
	t.Run("keeps a second agent out, and names the file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "journal")
		first, err := agent.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := agent.Open(path); !errors.Is(err, agent.ErrLocked) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v", err)
		}
		if _, err := agent.Read(path); err != nil {
			t.Errorf("reading beside it: %v", err)
		}
		first.Close()
		second, err := agent.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		second.Close()
	})
	t.Run("writes its last record once more, since it may be that only the system's memory has it", func(t *testing.T) {
		data := written(t)
		path := filepath.Join(t.TempDir(), "journal")
		write(t, path, data)
		before := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, before, before); err != nil {
			t.Fatal(err)
		}
		journal, err := agent.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer journal.Close()
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) > time.Minute {
			t.Errorf("nothing was written, %v", err)
		}
		if err := agent.Note(journal, 0, agent.Budget{Attempts: 7}); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(left, data) || len(left) == len(data) {
			t.Errorf("it is no longer what it was, and a record behind it, %v", err)
		}
	})
	t.Run("is for its owner alone", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "journal")
		journal, err := agent.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer journal.Close()
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
	t.Run("says what is wrong with a place where there can be none", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "missing", "journal")
		if _, err := agent.Open(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "directory that is there") {
			t.Errorf("got %v", err)
		}
		if _, err := agent.Open(os.DevNull); !errors.Is(err, agent.ErrNotAJournal) {
			t.Errorf("what remembers nothing: got %v", err)
		}
	})
}

// A journal that says what this release does not know is sound, and whoever has it needs the other release and nothing else.
func TestAJournalOfAnotherRelease(t *testing.T) {
	record := string(agent.Line(`{"n":1,"entry":1,"at":"2026-01-01T00:00:00Z","dream":{}}`))
	member := string(agent.Line(`{"n":1,"entry":1,"at":"2026-01-01T00:00:00Z","intention":{"run":"r","step":"s","key":"k","dream":1}}`))
	for name, text := range map[string]string{
		"of another form":                    "einmal agent journal 2\nwhatever",
		"with a record that is not known":    agent.Header + record,
		"with a member that is not known":    agent.Header + member,
		"with one, and a torn record behind": agent.Header + member + "0000",
	} {
		t.Run(name+" is refused and left as it is", func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal")
			write(t, path, []byte(text))
			_, opened := agent.Open(path)
			_, read := agent.Read(path)
			for _, err := range []error{opened, read} {
				if !errors.Is(err, agent.ErrOtherRelease) || errors.Is(err, agent.ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "use the release that has written it") {
					t.Errorf("got %v", err)
				}
			}
			if left, err := os.ReadFile(path); err != nil || string(left) != text {
				t.Errorf("it has become %q, %v", left, err)
			}
		})
	}
	t.Run("that is older, and does not say what was added since, is read", func(t *testing.T) {
		older := agent.Header + string(agent.Line(`{"n":1,"entry":1,"at":"2026-01-01T00:00:00Z","intention":{"run":"r","step":"s","key":"k"}}`)) +
			string(agent.Line(`{"n":2,"entry":1,"at":"2026-01-01T00:00:00Z","end":{"outcome":"person","reason":"the budget is spent"}}`))
		entries, err := agent.Entries([]byte(older))
		if err != nil || len(entries) != 1 || entries[0].Report().Advice == "" {
			t.Errorf("got %+v, %v", entries, err)
		}
	})
}

// Whatever a journal holds, reading it ends, and what is whole of it reads the same alone: a torn end changes nothing before it, and what is whole
// stays whole when something torn follows.
func FuzzScan(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte(agent.Header))
	f.Add(append([]byte(agent.Header), agent.Line(`{"n":1,"entry":1,"at":"2026-01-01T00:00:00Z","intention":{"run":"r","step":"s","key":"k"}}`)...))
	f.Add(append([]byte(agent.Header), agent.Line(`{"n":1}`)[:9]...))
	f.Add(append([]byte(agent.Header), "00000000 \n\x00"...))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, whole, err := agent.Scan(data)
		if err != nil {
			if !errors.Is(err, agent.ErrDamaged) && !errors.Is(err, agent.ErrNotAJournal) && !errors.Is(err, agent.ErrOtherRelease) || records != 0 || whole != 0 {
				t.Fatalf("%d records, %d bytes, %v", records, whole, err)
			}
			return
		}
		if whole > len(data) || records > bytes.Count(data[:whole], []byte("\n")) {
			t.Fatalf("%d records in %d of %d bytes", records, whole, len(data))
		}
		for _, tail := range []string{"", "\x00", "0000", "0000\x00\n"} {
			again, wholeAgain, err := agent.Scan(append(bytes.Clone(data[:whole]), tail...))
			if whole == 0 && tail != "" && tail != "\x00" {
				continue // not even the header is there
			}
			if err != nil || again != records || wholeAgain != whole {
				t.Fatalf("with %q behind what is whole: %d records, %d bytes, %v; want %d, %d", tail, again, wholeAgain, err, records, whole)
			}
		}
		_, _ = agent.Entries(data)
	})
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
