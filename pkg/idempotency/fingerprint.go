package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// FingerprintVersion is the version that this release writes. A version is a promise about bytes: it never changes its meaning,
// and a golden file holds it. A new rule is a new version, which a release learns to read before any release writes it.
const FingerprintVersion = "v1"

// ErrFingerprintVersion means that a stored fingerprint has a version that this process does not know, so it can't be compared. A
// newer release wrote it; trying again reaches one.
var ErrFingerprintVersion = errors.New("fingerprint version unknown")

// Fingerprint tells whether two attempts mean the same command: "v1:" and 64 hexadecimal digits.
type Fingerprint string

// Version is the part before the colon.
func (f Fingerprint) Version() string {
	version, _, _ := strings.Cut(string(f), ":")
	return version
}

// Command is what an attempt asks for, reduced to what it means. Two spellings of one command (member order, white space,
// escapes, an absent member and its default) are equal; two commands never are.
type Command struct {
	Account string
	Method  string
	Path    string // concrete: /v1/tickets/tkt_…/comments, never a route template
	Body    any    // validated, normalised, defaults applied; text is valid UTF-8, numbers are within ±(2^53−1)
}

// Canonical is the text that is hashed: RFC 8785 (JCS) of {v, account, method, path, command}.
func (c Command) Canonical() ([]byte, error) {
	text, err := json.Marshal(struct {
		Version string `json:"v"`
		Account string `json:"account"`
		Method  string `json:"method"`
		Path    string `json:"path"`
		Command any    `json:"command"`
	}{FingerprintVersion, c.Account, c.Method, c.Path, c.Body})
	if err != nil {
		return nil, fmt.Errorf("canonicalise command: %w", err)
	}
	canonical := jsontext.Value(text)
	if err := canonical.Canonicalize(); err != nil {
		return nil, fmt.Errorf("canonicalise command: %w", err)
	}
	return canonical, nil
}

// Fingerprint hashes the canonical form.
func (c Command) Fingerprint() (Fingerprint, error) {
	canonical, err := c.Canonical()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return Fingerprint(FingerprintVersion + ":" + hex.EncodeToString(sum[:])), nil
}

// matches compares an attempt's fingerprint with a stored one, under the version of the stored one.
func (f Fingerprint) matches(stored Fingerprint) (bool, error) {
	if stored.Version() != FingerprintVersion {
		return false, fmt.Errorf("compare fingerprints: %w: %q", ErrFingerprintVersion, stored.Version())
	}
	return f == stored, nil
}
