package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// ErrNoKey means that there is nothing to sign with.
var ErrNoKey = errors.New("there is no private key")

// Keys are public keys whose signatures are believed, as note prints them: NAME+HASH+KEY.
type Keys []string

// ParseKeys reads public keys, one a line; empty lines and lines that begin with # are skipped.
func ParseKeys(text string) (keys Keys, err error) {
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || slices.Contains(keys, line) {
			continue
		}
		if _, err := note.NewVerifier(line); err != nil {
			return nil, fmt.Errorf("line %d is no public key (NAME+HASH+KEY, as einmal audit key prints it)", n+1)
		}
		keys = append(keys, line)
	}
	return keys, nil
}

func (k Keys) verifiers() note.Verifiers {
	list := make([]note.Verifier, 0, len(k))
	for _, key := range k {
		if verifier, err := note.NewVerifier(key); err == nil { // ParseKeys has seen that it is one
			list = append(list, verifier)
		}
	}
	return note.VerifierList(list...)
}

// named is the public key of a name and hash, which a checkpoint tells.
func (k Keys) named(name string) string {
	i := slices.IndexFunc(k, func(key string) bool { return strings.HasPrefix(key, name+"+") })
	if i < 0 {
		return ""
	}
	return k[i]
}

func keyName(name string, hash uint32) string { return fmt.Sprintf("%s+%08x", name, hash) }

// CreateKey makes a key and keeps it, unless there is one. It returns the public half.
func (f Files) CreateKey(now time.Time) (public string, err error) {
	private, public, err := newKey(now)
	if err != nil {
		return "", err
	}
	if err := createOnce(f.key(), []byte(private+"\n")); err != nil {
		return "", fmt.Errorf("keep the new key: %w", err)
	}
	return public, f.believe(public)
}

// RotateKey puts a new key in place of the one that there is, whose checkpoints stay believed. What is sealed from now on is signed by the new
// one, by every process that reads this directory.
func (f Files) RotateKey(now time.Time) (public string, err error) {
	if _, old, err := f.signer(); err != nil {
		return "", err
	} else if err := f.believe(old); err != nil {
		return "", err
	}
	private, public, err := newKey(now)
	if err != nil {
		return "", err
	}
	if err := f.believe(public); err != nil { // before anything is signed by it
		return "", err
	}
	if err := replace(f.key(), []byte(private+"\n")); err != nil {
		return "", fmt.Errorf("keep the new key: %w", err)
	}
	return public, nil
}

// newKey makes one that is called after the day on which it was made.
func newKey(now time.Time) (private, public string, err error) {
	private, public, err = note.GenerateKey(rand.Reader, "einmal-"+now.UTC().Format(time.DateOnly))
	if err != nil {
		return "", "", fmt.Errorf("make a key: %w", err)
	}
	return private, public, nil
}

// signer reads the private key and returns with it its public half. Errors never tell what is in the file.
func (f Files) signer() (signer note.Signer, public string, err error) {
	info, err := os.Stat(f.key())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("%w at %s", ErrNoKey, f.key())
	case err != nil:
		return nil, "", fmt.Errorf("read the private key: %w", err)
	case info.Mode().Perm()&f.forbidden() != 0:
		return nil, "", fmt.Errorf("others may read the private key %s; chmod 600 it, and einmal audit key --rotate if they could", f.key())
	}
	text, err := os.ReadFile(f.key())
	if err != nil {
		return nil, "", fmt.Errorf("read the private key: %w", err)
	}
	private := string(bytes.TrimSpace(text))
	signer, err = note.NewSigner(private)
	if err != nil {
		return nil, "", fmt.Errorf("%s holds no private key (PRIVATE+KEY+NAME+HASH+KEY)", f.key())
	}
	public, err = publicOf(private, signer.Name())
	return signer, public, err
}

// forbidden are the bits that the private key's file must not have. One that comes from elsewhere may be read by its group: a secret that is mounted for a
// process which is not root is root's, and readable by the process's group.
func (f Files) forbidden() fs.FileMode {
	if f.KeyFile != "" {
		return 0o037
	}
	return 0o077
}

// publicOf is the public half of a private key that note has taken, PRIVATE+KEY+NAME+HASH+KEY: of KEY the first byte says which kind, the rest is
// the seed.
func publicOf(private, name string) (string, error) {
	parts := strings.SplitN(private, "+", 5) // the last may have a + in it
	seed, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return "", errors.New("the private key is of a kind that has no public half here")
	}
	public, _ := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	return note.NewEd25519VerifierKey(name, public)
}
