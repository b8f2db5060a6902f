package pgserver_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/einmal/einmal/pkg/database/pgserver"
)

func TestFindBinaries(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	real := filepath.Join(dir, "postgresql", "99", "bin")
	must(t, os.MkdirAll(real, 0o755))
	for _, name := range []string{"initdb", "postgres"} {
		must(t, os.WriteFile(filepath.Join(real, name), nil, 0o755))
	}

	t.Run("follows the link on PATH to its real place", func(t *testing.T) {
		path := filepath.Join(dir, "links")
		must(t, os.Mkdir(path, 0o755))
		must(t, os.Symlink(filepath.Join(real, "postgres"), filepath.Join(path, "postgres")))
		t.Setenv("PATH", path)
		if got, err := pgserver.FindBinaries(); err != nil || got != real {
			t.Fatalf("got %q, %v, want %q", got, err, real)
		}
	})
	t.Run("passes over a place without initdb", func(t *testing.T) {
		path := filepath.Join(dir, "incomplete")
		must(t, os.Mkdir(path, 0o755))
		must(t, os.WriteFile(filepath.Join(path, "postgres"), nil, 0o755))
		t.Setenv("PATH", path)
		got, err := pgserver.FindBinaries()
		if got == path || (err != nil && !errors.Is(err, pgserver.ErrNoBinaries)) {
			t.Fatalf("got %q, %v, want Debian's place or ErrNoBinaries", got, err)
		}
	})
}
