package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/einmal/einmal/e2e/scenarios"
)

// binary is the program, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "einmal-mutants-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "mutants")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// A change of the code that a mutant no longer applies to should be noticed at once, not when somebody runs them all.
func TestEveryMutantAppliesToTheCodeAsItIs(t *testing.T) {
	patches, err := filepath.Glob("*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatal("no patches", err)
	}
	for _, patch := range patches {
		check := exec.Command("git", "apply", "--check", filepath.Join("e2e/mutants", patch))
		check.Dir = "../.."
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v; README.md says how to make it anew\n%s", patch, err, out)
		}
	}
}

func TestEveryScenarioThatAMutantNamesExists(t *testing.T) {
	list := exec.Command(binary, "-list")
	list.Dir = "../.."
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	named := regexp.MustCompile(`killed by scenario (\S+)`).FindAllStringSubmatch(string(out), -1)
	for _, name := range named {
		if !slices.ContainsFunc(scenarios.All(), func(s scenarios.Scenario) bool { return s.Name == name[1] }) {
			t.Errorf("no scenario is called %s", name[1])
		}
	}
	if len(named) == 0 {
		t.Errorf("no mutant names a scenario:\n%s", out)
	}
}

// toy is a module with a rule (a sum is a sum), tests of it, and a program with a scenario.
var toy = map[string]string{
	"go.mod": "module example.com/toy\n\ngo 1.26\n",
	"sum/sum.go": `package sum

func Of(a, b int) int { return a + b }

func Name() string { return "sum" }
`,
	"sum/sum_test.go": `package sum

import "testing"

func TestSum(t *testing.T) {
	t.Run("adds two numbers", func(t *testing.T) {
		if Of(1, 2) != 3 {
			t.Error("it does not")
		}
	})
	if Name() != "sum" {
		t.Error("its name is wrong")
	}
}

func TestRed(t *testing.T) { t.Error("it always is") }

func TestSkipped(t *testing.T) { t.Skip("no database") }
`,
	"cmd/einmal/main.go": `package main

import (
	"fmt"
	"os"

	"example.com/toy/sum"
)

func main() {
	holds := sum.Of(1, 2) == 3
	fmt.Printf("{\"scenarios\": [{\"name\": %q, \"passed\": %v}]}\n", os.Args[len(os.Args)-1], holds)
	if !holds {
		os.Exit(1)
	}
}
`,
}

// sum is a patch of the toy's rule.
func sum(killer, from, to string) string {
	return fmt.Sprintf("# A sum is something else.\n# Killed-by: %s\n--- a/sum/sum.go\n+++ b/sum/sum.go\n@@ -1,5 +1,5 @@\n"+
		" package sum\n \n-%s\n+%s\n \n func Name() string { return \"sum\" }\n", killer, from, to)
}

const (
	right = "func Of(a, b int) int { return a + b }"
	wrong = "func Of(a, b int) int { return a - b }"
	same  = "func Of(a, b int) int { return b + a }"
	adds  = "./sum TestSum/adds_two_numbers"
)

// attack makes a toy repository with these mutants, in which nothing has been committed, and attacks it.
func attack(t *testing.T, mutants map[string]string, args ...string) (output string, err error) {
	t.Helper()
	root, temp := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range toy {
		write(name, text)
	}
	for name, text := range mutants {
		write("e2e/mutants/"+name+".patch", text)
	}
	if out, err := exec.Command("git", "init", root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	out, err := cmd.CombinedOutput()

	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("it left %v behind", left)
	}
	if now, _ := os.ReadFile(filepath.Join(root, "sum/sum.go")); !bytes.Equal(now, []byte(toy["sum/sum.go"])) {
		t.Errorf("it changed the repository itself:\n%s", now)
	}
	return string(out), err
}

func expect(t *testing.T, output string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !regexp.MustCompile(line).MatchString(output) {
			t.Errorf("no line matches %q in\n%s", line, output)
		}
	}
}

func TestMutants(t *testing.T) {
	t.Run("are killed by the test or the scenario that they name", func(t *testing.T) {
		output, err := attack(t, map[string]string{"by_test": sum(adds, right, wrong), "by_scenario": sum("scenario adding", right, wrong)})
		if err != nil {
			t.Error(err)
		}
		expect(t, output, `2 killers are green`, `killed +[0-9.]+ s  by_test: `+adds, `killed +[0-9.]+ s  by_scenario: scenario adding`, `2 mutants, 2 killed, 0 survived`)
	})
	t.Run("that nobody kills, or that show nothing, are a failure each, and the others are tried all the same", func(t *testing.T) {
		output, err := attack(t, map[string]string{
			"alive":         sum(adds, right, same),
			"alive_outside": sum("scenario adding", right, same),
			"old":           sum(adds, "func Of(a, b int) int { return 0 }", wrong),
			"no_go":         sum(adds, right, "func Of(a, b int) int { return }"),
			"elsewhere": "# Its name is another.\n# Killed-by: " + adds + "\n--- a/sum/sum.go\n+++ b/sum/sum.go\n@@ -4,2 +4,2 @@\n" +
				" \n-func Name() string { return \"sum\" }\n+func Name() string { return \"product\" }\n",
			"zzz": sum(adds, right, wrong),
		})
		if err == nil {
			t.Error("exit status 0")
		}
		expect(t, output, `SURVIVED .* alive: `, `SURVIVED .* alive_outside: `, `BROKEN .* old: .*\n +it does not apply`, `BROKEN .* no_go: .*\n +it does not compile`,
			`BROKEN .* elsewhere: .*\n +something else failed`, `killed .* zzz: `, `6 mutants, 1 killed, 2 survived`)
	})
	for name, killer := range map[string]string{
		"it is red":                        "./sum TestRed",
		"a test that it names was skipped": "./sum TestSkipped",
		"no test that it names was run":    "./sum TestSum/adds_three_numbers",
		"it does not compile":              "./product TestSum",
	} {
		t.Run("are not tried while of their killer is to be said: "+name, func(t *testing.T) {
			output, err := attack(t, map[string]string{"one": sum(killer, right, wrong)})
			if err == nil || strings.Contains(output, "killed") {
				t.Errorf("%v\n%s", err, output)
			}
			if name != "it does not compile" {
				expect(t, output, name)
			}
		})
	}
	t.Run("are refused unless they say what they break and who must notice", func(t *testing.T) {
		for text, want := range map[string]string{
			"--- a/x\n":                                         "which rule it breaks",
			"# A rule.\n--- a/x\n":                              "what must notice",
			"# A rule.\n# Killed-by: somebody\n":                `killer "somebody" is neither`,
			"# A rule.\n# Killed-by: ./a A\n# Killed-by: ./b B": "two killers",
		} {
			output, err := attack(t, map[string]string{"one": text})
			if err == nil {
				t.Errorf("%q was accepted", text)
			}
			expect(t, output, want)
		}
	})
	t.Run("are chosen by name", func(t *testing.T) {
		mutants := map[string]string{"one": sum(adds, right, wrong), "two": sum(adds, right, wrong), "broken": "no header"}
		output, err := attack(t, mutants, "two")
		if err != nil || strings.Contains(output, "one") {
			t.Errorf("%v\n%s", err, output)
		}
		expect(t, output, `1 mutants, 1 killed`)
		output, err = attack(t, mutants, "two", "three")
		if err == nil {
			t.Error("a name that there is not was accepted")
		}
		expect(t, output, `no mutant is called "three"`)
	})
}
