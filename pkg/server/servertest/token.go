package servertest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mark is in each token of Token and each key of Key. No service has a word like it: where it stands in a log, somebody has told one.
const mark = "~never-told"

// Key is a key that is found where it is told, however short its name is.
func Key(name string) string { return name + mark }

// Token is what a principal of Tokens shows. The published demo tokens are names of principals, which are told rightly.
func Token(principal string) string { return "token-of-" + principal + mark }

// demo are the principals that everybody may try a service as, as lines of a tokens file without their tokens.
var demo = []string{
	"demo-agent acme agent",
	"demo-agent-2 acme agent",
	"demo-approver acme approver",
	"demo-operator acme operator,auditor",
	"demo-globex globex agent",
	"demo-globex-operator globex operator,auditor",
}

// Tokens makes a tokens file in which each of these, "PRINCIPAL ACCOUNT ROLE[,ROLE]", has its Token: by default the demo's.
func Tokens(t testing.TB, principals ...string) (path string) {
	t.Helper()
	if len(principals) == 0 {
		principals = demo
	}
	var lines strings.Builder
	for _, p := range principals {
		name, _, _ := strings.Cut(p, " ")
		fmt.Fprintf(&lines, "%x %s\n", sha256.Sum256([]byte(Token(name))), p)
	}
	path = filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
