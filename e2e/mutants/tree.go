package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/einmal/einmal/pkg/child"
)

const (
	// program is the package of the binary that scenarios run against.
	program = "./cmd/einmal"

	// patience bounds one run of a killer. A scenario gives itself 90 s; what takes longer hangs.
	patience = 2 * time.Minute

	// leaveWithin is how long a killer that is stopped has to end what it has started.
	leaveWithin = 20 * time.Second
)

// tree is a copy of the repository that may be broken, in a directory with everything else that is temporary.
type tree struct {
	dir  string
	root string
	env  []string
}

// copyTree copies the repository of the current directory: what git knows, and what it would add, as it is on disk.
func copyTree(ctx context.Context) (*tree, error) {
	ls := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	ls.Stderr = os.Stderr
	files, err := ls.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of the repository: %w", err)
	}
	dir, err := os.MkdirTemp("", "einmal-mutants-")
	if err != nil {
		return nil, fmt.Errorf("copy the repository: %w", err)
	}
	t := &tree{dir: dir, root: filepath.Join(dir, "tree")}
	temp := filepath.Join(dir, "tmp")
	t.env = append(os.Environ(),
		"TMPDIR="+temp,                  // so that what a stopped killer leaves goes with the rest
		"CGO_ENABLED=0",                 // with -trimpath, so that the cache serves every copy, and make build too
		"CI=true",                       // a test that lacks its database fails instead of skipping
		"GIT_CEILING_DIRECTORIES="+dir,  // the copy is no repository, wherever TMPDIR is
		"GIT_CONFIG_GLOBAL="+os.DevNull, // nobody's own settings change how a patch is read
	)
	// PostgreSQL runs as another user where we are root, and must reach its directory.
	if err = errors.Join(os.Chmod(dir, 0o755), os.Mkdir(temp, 0o755)); err == nil {
		for file := range strings.SplitSeq(strings.TrimSuffix(string(files), "\x00"), "\x00") {
			if err = copyFile(file, filepath.Join(t.root, file)); err != nil {
				break
			}
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("copy the repository: %w", err), t.remove())
	}
	return t, nil
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) { // deleted, and git has not been told
		return nil
	}
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}

// apply breaks the copy.
func (t *tree) apply(ctx context.Context, patch string) error {
	_, err := t.output(exec.CommandContext(ctx, "git", "apply", "--whitespace=nowarn", patch))
	return err
}

// revert mends it. It is done whatever has happened meanwhile, since the next mutant is judged by it.
func (t *tree) revert(patch string) error {
	_, err := t.output(exec.Command("git", "apply", "--whitespace=nowarn", "--reverse", patch))
	return err
}

// build compiles the program, or the tests of another package, and returns the binary, which lasts until the next.
func (t *tree) build(ctx context.Context, target string) (binary string, err error) {
	args := []string{"test", "-c", "-vet=off"}
	if target == program {
		args = []string{"build", "-buildvcs=false"}
	}
	binary = filepath.Join(t.dir, "binary")
	args = append(args, "-trimpath", "-ldflags=-w", "-o", binary, target) // without debug information it links in half the time
	_, err = t.output(exec.CommandContext(ctx, "go", args...))
	return binary, err
}

// test2json turns the output of a test binary into the events of go test -json.
func (t *tree) test2json(ctx context.Context, output []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json")
	cmd.Stdin = bytes.NewReader(output)
	return t.output(cmd)
}

// output runs a tool in the copy. Its error is what the tool says on stderr.
func (t *tree) output(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = t.root, t.env, &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, tail(stderr.Bytes()))
	}
	return out, nil
}

// execute runs a killer to its end and says whether it failed. One that does not end, or that we are told to leave, is stopped, which
// is an error.
func (t *tree) execute(ctx context.Context, cmd *exec.Cmd) (stdout, stderr []byte, failed bool, err error) {
	var out, log bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = t.env, &out, &log
	cmd.WaitDelay = leaveWithin // for what it may have started and left behind, with our pipe in its hands
	process, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, nil, false, err
	}
	select {
	case <-process.Done():
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(patience):
		err = fmt.Errorf("it did not end within %v", patience)
	}
	if err != nil {
		_ = process.Stop(syscall.SIGTERM, leaveWithin) // how it ends now is no news: it was told to
	}
	failed = process.Err() != nil
	return out.Bytes(), log.Bytes(), failed, err
}

// tail is the end of what was printed, where it says what went wrong.
func tail(printed ...[]byte) string {
	const most = 30
	lines := strings.Split(strings.TrimSpace(string(bytes.Join(printed, []byte("\n")))), "\n")
	return "\t" + strings.Join(lines[max(0, len(lines)-most):], "\n\t")
}

// remove removes everything temporary.
func (t *tree) remove() error { return os.RemoveAll(t.dir) }
