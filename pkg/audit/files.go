package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Files are what is outside the database, in one directory: who can change the one should not be able to change the other.
//
//	audit.key               the private key that checkpoints are signed with, of all services that share the directory
//	audit.pub               public keys whose checkpoints are believed, one a line: this one's and those before it
//	SERVICE.checkpoint      the last checkpoint of a service's log
type Files struct {
	Dir     string
	Service string
	KeyFile string // in place of audit.key; empty: that
}

func (f Files) key() string {
	if f.KeyFile != "" {
		return f.KeyFile
	}
	return filepath.Join(f.Dir, "audit.key")
}

// KeysFile is where the public keys are.
func (f Files) KeysFile() string { return filepath.Join(f.Dir, "audit.pub") }

// CheckpointFile is where the last checkpoint is.
func (f Files) CheckpointFile() string { return filepath.Join(f.Dir, f.Service+".checkpoint") }

// Keys are the public keys that are believed. There may be none yet.
func (f Files) Keys() (Keys, error) {
	text, err := os.ReadFile(f.KeysFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the public keys: %w", err)
	}
	keys, err := ParseKeys(string(text))
	if err != nil {
		return nil, fmt.Errorf("read the public keys: %s: %w", f.KeysFile(), err)
	}
	return keys, nil
}

// believe adds a public key to those that are believed, if it is not among them.
func (f Files) believe(public string) error {
	keys, err := f.Keys()
	if err != nil || slices.Contains(keys, public) {
		return err
	}
	file, err := os.OpenFile(f.KeysFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // public keys are for everybody
	if err != nil {
		return fmt.Errorf("keep the public key: %w", err)
	}
	_, err = file.WriteString(public + "\n") // one write, so that processes that start together do not mix theirs
	if err := errors.Join(err, file.Sync(), file.Close(), giveAs(f.KeysFile(), f.Dir)); err != nil {
		return fmt.Errorf("keep the public key: %w", err)
	}
	return nil
}

// Checkpoint is the last checkpoint that was kept outside, signed; empty: none was.
func (f Files) Checkpoint() (signed string, err error) {
	text, err := os.ReadFile(f.CheckpointFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the checkpoint outside the database: %w", err)
	}
	return string(text), nil
}

// keep puts a checkpoint in place of the one that there is.
func (f Files) keep(signed string) error {
	if err := replace(f.CheckpointFile(), []byte(signed)); err != nil {
		return fmt.Errorf("keep the checkpoint outside the database: %w", err)
	}
	return nil
}

// setAside keeps the checkpoint of a log that went on where the database no longer does, under another name.
func (f Files) setAside(c Checkpoint) (path string, err error) {
	path = fmt.Sprintf("%s.%d.set-aside", f.CheckpointFile(), c.Size)
	return path, os.Rename(f.CheckpointFile(), path)
}

// replace writes a file so that at every moment there is the old one or the new one, also after a power cut. Only we read it.
func replace(path string, content []byte) error {
	temporary, err := write(path, content)
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return syncDir(path)
}

// createOnce is replace where nothing may be there: of those who call it together one succeeds, and the others find what that one wrote.
func createOnce(path string, content []byte) error {
	temporary, err := write(path, content)
	if err != nil {
		return err
	}
	err = os.Link(temporary, path)
	return errors.Join(err, os.Remove(temporary), syncDir(path))
}

func write(path string, content []byte) (temporary string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // for this user only
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, takeAfter(file.Name(), path), file.Sync(), file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// takeAfter lets a new file be read by those who read the one whose place it takes; where there is none, it belongs to whoever has the directory.
func takeAfter(file, path string) error {
	before, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return giveAs(file, filepath.Dir(path))
	case err != nil:
		return err
	}
	return errors.Join(os.Chmod(file, before.Mode().Perm()), giveAs(file, path))
}

// giveAs gives a file to the owner of another: an operator who is root must not leave behind what the service can't read.
func giveAs(file, other string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(other)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return os.Chown(file, int(owner.Uid), int(owner.Gid))
}

func syncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = dir.Sync()
	if err != nil && strings.Contains(err.Error(), "invalid argument") { // some file systems have nothing to sync there
		err = nil
	}
	return errors.Join(err, dir.Close())
}
