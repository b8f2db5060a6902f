package server

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// Principal is who makes a request: a name, the account it acts for, and what it may do there.
type Principal struct {
	Name    string
	Account string
	Roles   []Role
}

// Has reports whether the principal has at least one of the roles.
func (p Principal) Has(roles ...Role) bool {
	return slices.ContainsFunc(roles, func(r Role) bool { return slices.Contains(p.Roles, r) })
}

// Role is what a principal may do within its account.
type Role string

const (
	Agent    Role = "agent"    // the account's writes and reads
	Approver Role = "approver" // decisions about approvals, and reads
	Operator Role = "operator" // all an agent may, and environments, resolutions of reviews
	Auditor  Role = "auditor"  // reads, and the events and receipts of everyone in the account
)

// Writers and Readers are the roles for an ordinary write and an ordinary read.
var (
	Writers = []Role{Agent, Operator}
	Readers = []Role{Agent, Approver, Operator, Auditor}
)

// identities maps the SHA-256 of a token to whose it is. Looking up the digest is what makes the look-up safe to time: how
// far a comparison of digests gets says nothing about the token, and a stolen file holds no token.
type identities map[[sha256.Size]byte]Principal

func (known identities) find(token string) (Principal, bool) {
	p, ok := known[sha256.Sum256([]byte(token))]
	return p, ok
}

// configuredIdentities returns who may call, and whether the demo tokens are among them.
func configuredIdentities(config Config) (known identities, demo bool, err error) {
	known = identities{}
	if config.TokensFile != "" {
		if err := known.load(config.TokensFile); err != nil {
			return nil, false, fmt.Errorf("load EINMAL_TOKENS_FILE: %w", err)
		}
	}
	// A tokens file turns the demo tokens off even on loopback: there may be a proxy in front.
	if config.Demo || config.TokensFile == "" && isLoopback(config.Listen) {
		for _, p := range demoPrincipals {
			known[sha256.Sum256([]byte(p.Name))] = p
		}
		return known, true, nil
	}
	if len(known) == 0 {
		return nil, false, fmt.Errorf("nobody could call %s: set EINMAL_TOKENS_FILE to a file with a line "+
			`"SHA256-OF-TOKEN PRINCIPAL ACCOUNT ROLE[,ROLE]" for each token, or EINMAL_DEMO=1 to accept the published demo tokens there`, config.Listen)
	}
	return known, false, nil
}

// demoPrincipals are for trying things out. The token of each is its name.
var demoPrincipals = []Principal{
	{"demo-agent", "acme", []Role{Agent}},
	{"demo-agent-2", "acme", []Role{Agent}},
	{"demo-approver", "acme", []Role{Approver}},
	{"demo-operator", "acme", []Role{Operator, Auditor}},
	{"demo-globex", "globex", []Role{Agent}},
	{"demo-globex-operator", "globex", []Role{Operator, Auditor}},
}

// load adds the identities of a file: a line each, fields separated by white space; empty lines and lines that begin with
// # are skipped. An error names the line and never repeats what is on it.
func (known identities) load(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		digest, p, err := parseIdentity(line)
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		if _, taken := known[digest]; taken {
			return fmt.Errorf("%s, line %d: this token is on an earlier line too", path, n)
		}
		known[digest] = p
	}
	return lines.Err()
}

func parseIdentity(line string) (digest [sha256.Size]byte, p Principal, err error) {
	fields := strings.Fields(line)
	if len(fields) != 4 {
		return digest, p, fmt.Errorf("%d fields instead of SHA256-OF-TOKEN PRINCIPAL ACCOUNT ROLE[,ROLE]", len(fields))
	}
	if n, err := hex.Decode(digest[:], []byte(fields[0])[:min(len(fields[0]), 2*sha256.Size)]); err != nil || n != sha256.Size || len(fields[0]) != 2*sha256.Size {
		return digest, p, errors.New("the first field is not the 64 hexadecimal digits of a SHA-256 (printf %s TOKEN | sha256sum)")
	}
	if !utf8.ValidString(line) {
		return digest, p, errors.New("it is not UTF-8")
	}
	p = Principal{Name: fields[1], Account: fields[2]}
	for _, name := range strings.Split(fields[3], ",") {
		role := Role(name)
		if !slices.Contains(Readers, role) { // every role may read
			return digest, p, errors.New("the last field is not a list of agent, approver, operator, auditor, separated by commas")
		}
		p.Roles = append(p.Roles, role)
	}
	return digest, p, nil
}
