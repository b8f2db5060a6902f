// Package einmal_test holds what is true of the whole tree rather than of one package: which room may use which, that
// the services have the same shape, and that the README does what it says.
package einmal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/einmal/einmal/"

// source is one Go file of the module.
type source struct {
	path string // slash-separated, from the root
	*ast.File
	set *token.FileSet
}

func (s source) dir() string  { return path.Dir(s.path) }
func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// room is the part of the layout a directory belongs to: "cmd", "e2e", "migrations", "pkg", "services/tickets" …
func room(dir string) string {
	parts := strings.Split(dir, "/")
	if parts[0] == "services" && len(parts) > 1 {
		return path.Join(parts[:2]...)
	}
	return parts[0]
}

// forTests says whether a package exists for tests: it may use what only tests may use.
func forTests(dir string) bool {
	return room(dir) == "e2e" || strings.HasSuffix(dir, "test")
}

func (s source) imports() []string {
	var all []string
	for _, i := range s.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			panic(err) // the parser has accepted it
		}
		all = append(all, p)
	}
	return all
}

// sources parses every Go file of the module; bench is a module of its own.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, other := os.Stat(filepath.Join(p, "go.mod"))
			if p != "." && (other == nil || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		all = append(all, source{filepath.ToSlash(p), file, set})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("found %d Go files; is this the root of the repository?", len(all))
	}
	return all
}

func TestRoomsUseOnlyWhatIsBelowThem(t *testing.T) {
	below := map[string][]string{
		"pkg":        {"pkg"},
		"migrations": {"pkg"},
		"services":   {"pkg", "migrations"},
		"e2e":        {"pkg", "migrations", "services", "e2e"},
		"cmd":        {"pkg", "migrations", "services", "e2e", "cmd"},
	}
	for _, s := range sources(t) {
		from := room(s.dir())
		if from == "." {
			continue // these tests look at everything
		}
		for _, imported := range s.imports() {
			dir, ours := strings.CutPrefix(imported, module)
			if !ours || room(dir) == from {
				continue
			}
			kind, _, _ := strings.Cut(from, "/")
			if slices.Contains(below[kind], strings.Split(dir, "/")[0]) {
				continue
			}
			// A test database comes migrated, so the tests of pkg reach the migrations through dbtest and idemtest.
			if kind == "pkg" && dir == "migrations" && (s.isTest() || forTests(s.dir())) {
				continue
			}
			// What a service sends outside is tested against the outside world as the simulator is.
			if kind == "services" && room(dir) == "services/simulator" && s.isTest() {
				continue
			}
			t.Errorf("%s imports %s: %s may use only %v", s.path, imported, from, below[kind])
		}
	}
}

func TestWhatOnlyTestsNeedStaysInTests(t *testing.T) {
	testOnly := regexp.MustCompile(`^(testing|github\.com/google/go-cmp|github\.com/getkin/kin-openapi|pgregory\.net/rapid|go\.uber\.org/goleak)(/|$)` +
		`|^` + regexp.QuoteMeta(module) + `.*test$`)
	for _, s := range sources(t) {
		if s.isTest() || forTests(s.dir()) {
			continue
		}
		for _, imported := range s.imports() {
			if testOnly.MatchString(imported) {
				t.Errorf("%s imports %s, which only tests may", s.path, imported)
			}
		}
	}
}

// A request meets the stages of every service in the same order and under the same names, so that who has read one
// service finds their way in the next.
func TestServicesKeepTheSameStageFiles(t *testing.T) {
	always := []string{"doc", "config", "service", "http", "command", "execute", "store", "fsck"}
	stages := append(slices.Clone(always), "provider", "evidence", "settle", "hook")
	nouns := map[string][]string{
		"services/tickets":     {"ticket", "comment", "status", "alert"},
		"services/payments":    {"order", "payment", "refund", "approval", "unmatched", "authorize", "capture", "cancel"}, // the provider is split by verb
		"services/deployments": {"deployment", "environment", "artifact", "approval", "rollout", "rollback", "cancel"},
	}

	files := map[string][]string{}
	for _, s := range sources(t) {
		if _, domain := nouns[s.dir()]; domain && !s.isTest() {
			files[s.dir()] = append(files[s.dir()], strings.TrimSuffix(path.Base(s.path), ".go"))
		}
	}
	if len(files) == 0 {
		t.Fatal("found no service")
	}
	for service, names := range files {
		for _, stage := range always {
			if !slices.Contains(names, stage) {
				t.Errorf("%s has no %s.go", service, stage)
			}
		}
		if _, err := os.Stat(filepath.Join(service, "openapi.yaml")); err != nil {
			t.Errorf("%s has no openapi.yaml", service)
		}
		for _, name := range names {
			stage, noun, _ := strings.Cut(name, "_")
			known := slices.Contains(stages, name) || slices.Contains(nouns[service], name) ||
				slices.Contains(stages, stage) && slices.Contains(nouns[service], noun)
			if !known {
				t.Errorf("%s/%s.go is neither a stage, a noun, nor stage_noun.go", service, name)
			}
		}
	}
}

// A name says what a thing does. These say that nobody knew.
func TestNoPackageOrFileIsCalledUtil(t *testing.T) {
	empty := regexp.MustCompile(`(^|[/_])(utils?|common|helpers?|types|models|interfaces|base|misc|shared|lib)(\.go|_test\.go|/|$)`)
	for _, s := range sources(t) {
		if empty.MatchString(s.path) || empty.MatchString(s.Name.Name) {
			t.Errorf("%s: the name says nothing of what is in it", s.path)
		}
	}
}

// What the code must not call, and why.
func TestCallsThatDoNotBelong(t *testing.T) {
	forbidden := map[string]string{
		"time.Sleep":    "wait for a condition, or on a timer beside ctx.Done()",
		"AutoMigrate":   "the SQL files are the schema",
		"FirstOrCreate": "it reads, then inserts; a claim inserts and looks at rows affected",
		"Save":          "it writes whole rows over whatever is there; change rows with WHERE state = ?",
	}
	for _, s := range sources(t) {
		if s.isTest() || forTests(s.dir()) {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			name := f.Sel.Name
			if x, ok := f.X.(*ast.Ident); ok && x.Name == "time" {
				name = "time." + name
			}
			if why, bad := forbidden[name]; bad {
				t.Errorf("%s calls %s: %s", s.set.Position(call.Pos()), name, why)
			}
			return true
		})
	}
}

// ON CONFLICT without a target swallows every violation, also those of a domain index that would have been a refusal.
func TestOnConflictNamesItsTarget(t *testing.T) {
	bare := regexp.MustCompile(`(?i)ON\s+CONFLICT\s+DO`)
	for _, s := range sources(t) {
		if s.isTest() || forTests(s.dir()) {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if n.Kind == token.STRING && bare.MatchString(n.Value) {
					t.Errorf("%s: ON CONFLICT names no target", s.set.Position(n.Pos()))
				}
			case *ast.CompositeLit:
				typ, ok := n.Type.(*ast.SelectorExpr)
				if ok && typ.Sel.Name == "OnConflict" && !slices.ContainsFunc(n.Elts, namesTarget) {
					t.Errorf("%s: OnConflict names no Columns or OnConstraint", s.set.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

func namesTarget(e ast.Expr) bool {
	field, ok := e.(*ast.KeyValueExpr)
	if !ok {
		return false
	}
	name, ok := field.Key.(*ast.Ident)
	return ok && (name.Name == "Columns" || name.Name == "OnConstraint")
}

// One code path for both databases: only pkg/database and the choice of the migrations' tree know which one it is.
func TestOnlyDatabaseKnowsItsKind(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() || !strings.HasPrefix(s.dir(), "services/") && !strings.HasPrefix(s.dir(), "pkg/") ||
			strings.HasPrefix(s.dir(), "pkg/database") || forTests(s.dir()) {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			x, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := x.X.(*ast.Ident); ok && pkg.Name == "database" && (x.Sel.Name == "Postgres" || x.Sel.Name == "SQLite") {
				t.Errorf("%s asks which database it has", s.set.Position(x.Pos()))
			}
			return true
		})
	}
}
