package einmal_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each block of Go in docs/copying.md is preceded by a comment that names a file and a region of it, and is that region.
func TestCopyingShowsCodeThatRuns(t *testing.T) {
	page, err := os.ReadFile("docs/copying.md")
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
