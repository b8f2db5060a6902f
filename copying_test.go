package einmal_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each block of Go in these pages is preceded by a comment that names a file and a region of it, and is that region.
func TestPagesShowCodeThatRuns(t *testing.T) {
	for _, name := range []string{"docs/copying.md", "docs/legacy-targets.md"} {
		t.Run(name, func(t *testing.T) { checkBlocks(t, name) })
	}
}

func checkBlocks(t *testing.T, name string) {
	t.Helper()
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- (\\S+) (\\S+) -->\n```go\n(.*?)\n```").FindAllStringSubmatch(string(page), -1)
	if all := strings.Count(string(page), "```go"); all == 0 || all != len(blocks) {
		t.Errorf("%d of %d blocks name what they show", len(blocks), all)
	}
	for _, block := range blocks {
		file, name, shown := block[1], block[2], block[3]
		source, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(region(string(source), name), shown); diff != "" {
			t.Errorf("%s, region %s (-), as the page shows it (+):\n%s", file, name, diff)
		}
	}
}

// The commands of the page, run as they are printed in a module of somebody else's, make a copy that builds, that answers the retry of the
// example from what it stored, and that the page's own test holds to the contract. Nothing is fetched: the versions are ours.
func TestTheCopyOfThePageWorks(t *testing.T) {
	einmal, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(command string) string {
		t.Helper()
		bash := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", command)
		bash.Dir = dir
		bash.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
		out, err := bash.CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v\n%s", command, err, out)
		}
		return string(out)
	}
	page, err := os.ReadFile("docs/copying.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- run \\S+ -->\n```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if all := strings.Count(string(page), "```sh"); len(blocks) != 2 || all != len(blocks) {
		t.Fatalf("%d of %d blocks are to be run, want 2", len(blocks), all)
	}
	run("go mod init example.com/notes && echo 'package notes' > notes.go")
	told := ""
	for _, block := range blocks {
		told += run(strings.ReplaceAll(block[1], "einmal=../einmal", "einmal='"+einmal+"'"))
	}
	contract, err := os.ReadFile("testdata/contract_test.go")
	if err != nil {
		t.Fatal(err)
	}
	contract = bytes.ReplaceAll(contract, []byte(module), []byte("example.com/notes/internal/einmal/"))
	if err := os.WriteFile(filepath.Join(dir, "contract_test.go"), contract, 0o600); err != nil {
		t.Fatal(err)
	}
	// One topic of the suite shows that it runs; all of them run where they belong, in pkg/idempotency.
	told += run("go test -v -run 'TestContract/claim$' .")
	for _, passed := range []string{`(?m)^ok\s+\S+/idempotency/idemhttp\s+([0-9.]+s|\(cached\))$`, `--- PASS: TestContract/claim`} {
		if !regexp.MustCompile(passed).MatchString(told) {
			t.Errorf("no %s in\n%s", passed, told)
		}
	}
}

// region is what stands in a source between "// name:" and "// :name", each piece without the indentation that all its lines have.
func region(source, name string) string {
	var pieces []string
	for _, piece := range regexp.MustCompile(`(?ms)^\t*// `+name+`:\n(.*?)^\t*// :`+name+`$`).FindAllStringSubmatch(source, -1) {
		text := strings.Trim(piece[1], "\n")
		indent := text[:len(text)-len(strings.TrimLeft(text, "\t"))]
		pieces = append(pieces, strings.ReplaceAll(strings.TrimPrefix(text, indent), "\n"+indent, "\n"))
	}
	return strings.Join(pieces, "\n\n")
}
