package einmal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Decisions are numbered in order, each by its file and its title, and each says which test holds it.
func TestDecisionsAreNumberedOnceAndHeld(t *testing.T) {
	files, err := filepath.Glob("docs/decisions/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no decisions", err)
	}
	for i, file := range files { // in the order of their names
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if number := fmt.Sprintf("%04d-", i+1); !strings.HasPrefix(filepath.Base(file), number) {
			t.Errorf("%s should begin with %s", file, number)
		}
		if title := fmt.Sprintf("# %d. ", i+1); !strings.HasPrefix(string(text), title) {
			t.Errorf("the title of %s should begin with %q", file, title)
		}
		if !regexp.MustCompile(`(?m)^\W*Held by:`).Match(text) {
			t.Errorf("%s does not say what holds it", file)
		}
	}
}
