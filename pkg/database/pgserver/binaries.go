package pgserver

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// ErrNoBinaries means that this machine has no PostgreSQL server to start.
var ErrNoBinaries = errors.New("no PostgreSQL server on this machine: neither on PATH nor under /usr/lib/postgresql. " +
	"On Debian or Ubuntu run `apt-get install -y postgresql` once, on macOS `brew install postgresql@17`")

// findBinaries returns the directory that holds initdb and postgres: that of the postgres on PATH, else the newest of Debian's. A distribution
// may put a link to postgres alone on PATH, so it is followed to where it leads.
func findBinaries() (string, error) {
	if postgres, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(postgres); err == nil && complete(filepath.Dir(real)) {
			return filepath.Dir(real), nil
		}
	}
	newest, dir := 0, ""
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is well-formed
	for _, bin := range found {
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
		if err == nil && version > newest && complete(bin) {
			newest, dir = version, bin
		}
	}
	if dir == "" {
		return "", ErrNoBinaries
	}
	return dir, nil
}

func complete(bin string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if info, err := os.Stat(filepath.Join(bin, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}
