package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// ErrLocked means that another process writes the journal.
var ErrLocked = errors.New("another agent is using the journal")

// Journal is the memory of an agent: one file, to which records are only appended, by one process at a time. It belongs on a local disk, where a
// lock is a lock and a sync reaches what it says.
type Journal struct {
	Path string

	mu      sync.Mutex
	file    *os.File
	cut     int   // bytes of a torn record that Open has removed
	broken  error // why nothing can be appended any more
	records int64
	entries []*Entry
}

// Open opens the journal of a path, or makes it, and keeps every other process from it until Close. What is left of a record that was being written
// when its writer died is cut off, so that the next one does not run into it; the last whole one is written once more.
func Open(path string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // commands are nobody else's business
	if err != nil {
		return nil, fmt.Errorf("open journal: %w; name a file that may be written, in a directory that is there", err)
	}
	if info, err := file.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w. Nothing was changed; name another file", path, ErrNotAJournal), file.Close())
	}
	j := &Journal{Path: path, file: file}
	if err := j.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w", path, err), file.Close())
	}
	return j, nil
}

// Read is what a journal holds, without the right to write it: another process may be doing that. What is torn is ignored.
func Read(path string) ([]*Entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w. Is it another file, or was nothing begun yet?", err)
		}
		return nil, fmt.Errorf("read journal: %w", err)
	}
	records, _, err := scan(data)
	if err == nil {
		var entries []*Entry
		if entries, err = add(records); err == nil {
			return entries, nil
		}
	}
	return nil, fmt.Errorf("read journal %s: %w", path, advise(err))
}

// Cut is how many bytes of a torn record were cut off when the journal was opened.
func (j *Journal) Cut() int { return j.cut }

// Entries are the journal's, oldest first.
func (j *Journal) Entries() []*Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// Close lets other processes use the journal.
func (j *Journal) Close() error { return j.file.Close() }

// begin journals a new intention. When it returns, the intention is on disk.
func (j *Journal) begin(in Intention) (*Entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := record{Number: j.records + 1, Entry: j.records + 1, At: time.Now(), Intention: &in}
	if err := j.write(&r); err != nil {
		return nil, err
	}
	entries, err := fold(j.entries, r)
	if err != nil {
		return nil, err
	}
	j.entries = entries
	return entries[len(entries)-1], nil
}

// note journals what happened to an entry. When it returns, that is on disk.
func (j *Journal) note(e *Entry, r record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.Number, r.Entry, r.At = j.records+1, e.Number, time.Now()
	if err := j.write(&r); err != nil {
		return err
	}
	_, err := fold(j.entries, r)
	return err
}

// write appends a record. After a failure nothing is appended any more: part of a line may be there, and a sync that has failed once says nothing
// when it succeeds later, since the system may have dropped what it could not write and go on showing it to readers. So at most the last record of
// a journal is not on disk, and Open writes that one again.
func (j *Journal) write(r *record) error {
	if j.broken != nil {
		return fmt.Errorf("write journal %s: it has failed before, and has to be opened again: %w", j.Path, j.broken)
	}
	r.At = r.At.UTC().Truncate(time.Microsecond)
	line, err := r.line()
	if err == nil {
		if _, err = j.file.Write(line); err == nil {
			err = j.file.Sync()
		}
		j.broken = err
	}
	if err != nil {
		return fmt.Errorf("write journal %s: %w", j.Path, err)
	}
	j.records = r.Number
	return nil
}

// load locks and reads the file, and makes what it has read last.
func (j *Journal) load() error {
	if err := syscall.Flock(int(j.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("%w; wait for it to end, and do the same again; in another journal the same step would have another key", ErrLocked)
		}
		return fmt.Errorf("lock: %w", err)
	}
	data, err := io.ReadAll(j.file)
	if err != nil {
		return err
	}
	records, whole, err := scan(data)
	if err == nil {
		j.entries, err = add(records)
	}
	if err != nil {
		return advise(err)
	}
	j.records, j.cut = int64(len(records)), len(data)-whole
	if j.cut > 0 {
		if err := j.file.Truncate(int64(whole)); err != nil {
			return fmt.Errorf("cut off a torn record: %w", err)
		}
	}
	if whole == 0 {
		data, whole = []byte(header), len(header)
	}
	return j.settleOnDisk(data[:whole])
}

// settleOnDisk writes the last line of a journal where it stands, and syncs the file and its name. Whoever wrote what was just read may have died
// before its sync, or have been told that it failed; reading does not tell whether the disk has it, and we are about to act on it. The same bytes in
// the same place change nothing where it has. All before it was synced before it was written.
func (j *Journal) settleOnDisk(text []byte) error {
	last := bytes.LastIndexByte(text[:len(text)-1], '\n') + 1
	if _, err := j.file.Seek(int64(last), io.SeekStart); err != nil {
		return err
	}
	if _, err := j.file.Write(text[last:]); err != nil { // and here the next record follows
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	directory, err := os.Open(filepath.Dir(j.Path))
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// advise says what to do about a journal that can't be used. It is as it was.
func advise(err error) error {
	switch {
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("%w. Nothing was changed. Keep a copy of the file, and settle with each target, by the keys that are readable in it, what was sent; then begin a new journal", err)
	case errors.Is(err, ErrOtherRelease):
		return fmt.Errorf("%w. Nothing was changed or sent; use the release that has written it, or a newer one", err)
	case errors.Is(err, ErrNotAJournal):
		return fmt.Errorf("%w. Nothing was changed; name another file", err)
	}
	return err
}
