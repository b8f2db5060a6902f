package agent_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/agent"
)

func TestParseSteps(t *testing.T) {
	for name, text := range map[string]string{
		"one object":            `{"path":"/a"} `,
		"JSON lines":            "{\"path\":\"/a\"}\n{\"path\":\"/b\"}\n",
		"an array":              `[{"path":"/a"},{"path":"/b"}]`,
		"objects over any line": "{\n\"path\": \"/a\"\n}\n\n{\"path\":\n\"/b\"}",
	} {
		t.Run("reads "+name, func(t *testing.T) {
			steps, err := agent.ParseSteps([]byte(text))
			if err != nil || len(steps) != strings.Count(text, "path") || steps[0].Path != "/a" {
				t.Errorf("got %+v, %v", steps, err)
			}
		})
	}
	for name, text := range map[string]string{
		"nothing":                    " \n",
		"an empty array":             `[]`,
		"a text":                     `"create a ticket"`,
		"words around the JSON":      "Here is the step:\n{\"path\":\"/a\"}",
		"an unknown member":          `{"path":"/a","idempotency_key":"mine"}`,
		"a member of another case":   `{"Path":"/a"}`,
		"a member that is twice":     `{"path":"/a","path":"/b"}`,
		"a member of a body twice":   `{"path":"/a","body":{"x":1,"x":2}}`,
		"null":                       `{"path":"/a","step":null}`,
		"an empty name":              `{"path":"/a","step":""}`,
		"an empty target":            `{"path":"/a","target":""}`,
		"no attempts":                `{"path":"/a","budget":{"attempts":0}}`,
		"no time":                    `{"path":"/a","budget":{"deadline_seconds":0}}`,
		"no wait":                    `{"path":"/a","budget":{"longest_wait_seconds":0}}`,
		"null in a budget":           `{"path":"/a","budget":{"longest_wait_seconds":null}}`,
		"null as a budget's cost":    `{"path":"/a","budget":{"cost":null}}`,
		"another type":               `{"path":["/a"]}`,
		"a torn end":                 `{"path":"/a"}{"path":`,
		"invalid UTF-8":              "{\"path\":\"/a\",\"body\":{\"x\":\"\xff\"}}",
		"a budget that is not known": `{"path":"/a","budget":{"tries":3}}`,
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			if steps, err := agent.ParseSteps([]byte(text)); !errors.Is(err, agent.ErrInvalid) {
				t.Errorf("got %+v, %v", steps, err)
			}
		})
	}
	for text, says := range map[string]string{
		`{"path":"/a"}{"path":"/b","key":"mine"}`:  "step 2: /key is not known; a step has step, target, method, path, retry",
		`[{"path":"/a","budget":{"tries":3}}]`:     "step 1: /budget/tries is not known; a step has",
		`{"path":"/a"}[{"path":"/b"},{"path":[]}]`: "step 3: /path has another JSON type than it must have; a step has",
		`{"path":"/a"}"create a ticket"`:           "step 2: it is no JSON object; a step has",
		`{"path":"/a"} path: /b`:                   `step 2: invalid character 'p' at start of value after offset 14; steps are JSON objects, such as {"path": `,
		`{"path":"/a","step":""}`:                  `step 1: /step is ""; leave it out`,
		`{"path":"/a","budget":{"attempts":0}}`:    "step 1: /budget/attempts: it is 1 or more; leave it out",
	} {
		t.Run("says where and what may stand there in "+text, func(t *testing.T) {
			if _, err := agent.ParseSteps([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("got %v, want %s", err, says)
			}
		})
	}
}

// Everything that is wrong is told at once, and nothing is sent, also of what is right.
func TestStepsAreCheckedBeforeAnythingIsSent(t *testing.T) {
	for _, test := range []struct{ step, says string }{
		{`{"path":"/a","method":"GET"}`, `/method: "GET" is none of POST, PUT, PATCH, DELETE`},
		{`{"path":"/a","method":"post"}`, `/method: "post"`},
		{`{}`, "/path: it is missing, or empty; it must begin with /, such as /v1/tickets"},
		{`{"path":""}`, "/path: it is missing, or empty"},
		{`{"path":"http://evil.example/a"}`, "/path: it must begin with /; the host is its target's"},
		{`{"path":"//evil.example/a"}`, "/path: it names no other host"},
		{`{"path":"/\\evil.example/a"}`, "/path: it names no other host"},
		{`{"path":"/a?b=c"}`, "/path: it has no query"},
		{`{"path":"/a#b"}`, "/path: it has no query and no fragment"},
		{`{"path":"/a b"}`, "/path: it has no spaces"},
		{`{"path":"/a\r\nX: y"}`, "/path: it has no spaces"},
		{`{"path":"/a/../b"}`, "/path: no part of it is . or .."},
		{`{"path":"/a/%2E%2e/b"}`, "/path: no part of it is . or .."},
		{`{"path":"/a","target":"mars"}`, `/target: there is no "mars"; the agent was given the one without a name`},
		{`{"path":"/a","step":"a b"}`, "/step: "},
		{`{"path":"/a","step":"command:1"}`, "/step: "},
		{`{"path":"/a","retry":"always"}`, "/retry: "},
		{`{"path":"/a","retry_of":"x","step":"x"}`, "/retry_of: "},
		{`{"path":"/a","cost":-1}`, "/cost: "},
		{`{"path":"/a","budget":{"attempts":-1}}`, "/budget: "},
		{`{"path":"/a","budget":{"deadline_seconds":99999999999}}`, "/budget: "},
		{`{"path":"/a","body":[1]}`, "/body: it is one JSON object"},
		{`{"path":"/a","body":{"n":9007199254740993}}`, "/body/n: the number 9007199254740993"},
		{`{"path":"/a","body":{"x":[0,1e2]}}`, "/body/x/1: the number 1e2"},
		{`{"path":"/a","body":{"n":12.50}}`, "/body/n: the number 12.50"},
		{`{"path":"/a","body":{"n":-0}}`, "/body/n: the number -0"},
		{`{"path":"/a","body":{"n":1e999}}`, "/body/n: the number 1e999"},
	} {
		w := newWork(t, newTarget(t, done("executed")))
		_, err := w.do(create + test.step + `{"path":"nowhere"}`)
		if !errors.Is(err, agent.ErrInvalid) || !strings.Contains(err.Error(), "step 2: "+test.says) || !strings.Contains(err.Error(), "step 3: /path") {
			t.Errorf("%s: got %v, want %s", test.step, err, test.says)
		}
		if _, writes := w.target.arrived(); writes != 0 {
			t.Errorf("%s: %d requests", test.step, writes)
		}
	}
}

// Who names a target wrongly is told the right names.
func TestAnUnknownTargetIsToldTheOthers(t *testing.T) {
	journal, err := agent.Open(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	steps, err := agent.ParseSteps([]byte(`{"path":"/a","target":"mars"}{"path":"/a"}`))
	if err != nil {
		t.Fatal(err)
	}
	for says, targets := range map[string]map[string]agent.Target{
		`the agent was given none`:                          nil,
		`there is no "mars"; the agent was given "a", "b";`: {"a": {URL: "http://x"}, "b": {URL: "http://y"}},
		`step 2: /target: it is missing; the agent was`:     {"mars": {URL: "http://x"}},
	} {
		a, err := agent.New(journal, agent.Config{Run: "run-1", Targets: targets})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Do(t.Context(), steps); !errors.Is(err, agent.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %s", err, says)
		}
	}
}

// Two spellings of one command are one command, and two commands never are.
func FuzzCommandsOfOneStep(f *testing.F) {
	f.Add(`{"a":1,"b":[1.5,"x"]}`, `{"b":[1.5,"\u0078"],"a":1}`)
	f.Add(`{"a":1}`, `{"a":"1"}`)
	f.Add(`{"n":9007199254740992}`, `{"n":9007199254740993}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" {
			return // is {}
		}
		first, errs := agent.NewCommand("", "POST", "/x", []byte(a))
		second, more := agent.NewCommand("", "POST", "/x", []byte(b))
		if len(errs)+len(more) > 0 {
			return
		}
		if same := first.Equal(second); same != agent.MeanTheSame(a, b) || same != (first.Name() == second.Name()) {
			t.Errorf("%s and %s: equal is %v", a, b, same)
		}
		again, wrong := agent.NewCommand("", "POST", "/x", first.Body)
		if len(wrong) > 0 || !again.Equal(first) {
			t.Errorf("%s is sent as %s, which reads as %s, %v", a, first.Body, again.Body, wrong)
		}
	})
}

func TestNewTarget(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:8081/": "http://127.0.0.1:8081", "HTTPS://Example.COM/api/": "https://example.com/api",
	} {
		if target, err := agent.NewTarget(address, agent.Keys); err != nil || target.URL != want {
			t.Errorf("%s: got %+v, %v", address, target, err)
		}
	}
	for _, address := range []string{"", "127.0.0.1:8081", "ftp://x", "http://", "http://user:secret@x", "http://x?a=b", "http://x#y", "http://x\n"} {
		if target, err := agent.NewTarget(address, agent.Operations); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %+v, %v", address, target, err)
		}
	}
	if _, err := agent.NewTarget("http://x", "everything"); err == nil || !strings.Contains(err.Error(), "operations, keys, none") {
		t.Errorf("got %v", err)
	}
}
