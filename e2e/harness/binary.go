package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is this one, by name: whoever imports it may be working in another.
const module = "github.com/einmal/einmal"

// Build compiles the einmal binary of this module into dir, as it is shipped: without cgo.
func Build(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w%s", err, stderr(err))
	}
	if err := readSources(strings.TrimSpace(string(root))); err != nil {
		return "", fmt.Errorf("read sources: %w", err)
	}
	binary := filepath.Join(dir, "einmal")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/einmal")
	build.Dir = strings.TrimSpace(string(root))
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build einmal: %w\n%s", err, out)
	}
	return binary, nil
}

// readSources looks at every folder that einmal is built from. go test takes a result from its cache unless something has changed that the test
// itself has opened, and what the compiler opens it does not see.
func readSources(root string) error {
	for _, top := range []string{"cmd", "services", "pkg", "migrations", "e2e"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil {
			return err
		}
	}
	return nil
}

func stderr(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "\n" + string(exit.Stderr)
	}
	return ""
}
