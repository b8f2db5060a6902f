package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/einmal/einmal/pkg/agent"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
)

const openTicket = `{"step": "open", "path": "/v1/tickets", "body": {"project": "ops", "title": "Disk full"}}`

// errand is a journal and a place to work at.
type errand struct {
	t        *testing.T
	settings []string
	target   string
}

func newErrand(t *testing.T, target string) errand {
	t.Helper()
	return errand{t, []string{"EINMAL_AGENT_TOKEN=demo-agent", "EINMAL_AGENT_JOURNAL=" + filepath.Join(t.TempDir(), "journal")}, target}
}

// do runs `einmal agent do` with a file of steps.
func (e errand) do(steps string, args ...string) ended {
	e.t.Helper()
	file := filepath.Join(e.t.TempDir(), "steps.jsonl")
	if err := os.WriteFile(file, []byte(steps), 0o600); err != nil {
		e.t.Fatal(err)
	}
	return run(e.t, e.settings, append([]string{"agent", "do", file, "--run", "run-1", "--target", e.target}, args...)...)
}

// told is what is printed with --json.
type told struct {
	ExitCode int `json:"exit_code"`
	Error    string
	Detail   string
	Steps    []struct {
		Disposition, Step, Outcome, Effect, Key, Advice, Reason string
		ExitCode                                                int `json:"exit_code"`
		Response                                                *struct {
			Status int
			Body   struct{ ID string }
		}
		Requests []struct{ Kind, At string }
	}
}

func (e ended) told(t *testing.T) (j told) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.out), &j); err != nil {
		t.Fatalf("%v in\n%s\n%s", err, e.out, e.err)
	}
	return j
}

func TestAgent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		service := start(t, "tickets", "EINMAL_DATABASE_URL="+dbtest.URL(t, kind))
		at := "http://" + service.address

		t.Run("does a step once, and prints it for people", func(t *testing.T) {
			e := newErrand(t, at)
			for _, disposition := range []string{"created", "existing"} {
				got := e.do(openTicket)
				if got.status != 0 || got.err != "" || !strings.Contains(got.out, "done") || !strings.Contains(got.out, disposition) || !strings.Contains(got.out, "201 /v1/tickets/tkt_") {
					t.Errorf("%+v", got)
				}
			}
		})
		t.Run("prints the same resource for programs, whoever asks", func(t *testing.T) {
			e := newErrand(t, at)
			first, second := e.do(openTicket, "--json").told(t), e.do(openTicket, "--json").told(t)
			if first.ExitCode != 0 || first.Steps[0].Response.Body.ID == "" || first.Steps[0].Response.Body.ID != second.Steps[0].Response.Body.ID ||
				first.Steps[0].Effect != "applied" || second.Steps[0].Disposition != "existing" {
				t.Errorf("%+v\n%+v", first, second)
			}
		})
		t.Run("ends otherwise for a refusal, a changed step, an unknown outcome and a wrong call", func(t *testing.T) {
			e := newErrand(t, at)
			if got := e.do(openTicket+`{"step":"bad","path":"/v1/tickets","body":{}}`, "--json"); got.status != 2 || got.told(t).Steps[1].Outcome != "refused" {
				t.Errorf("a refusal: %+v", got)
			}
			got := e.do(strings.Replace(openTicket, "full", "fuller", 1), "--json")
			if j := got.told(t); got.status != 4 || j.Error != "step_changed" || j.ExitCode != 4 || len(j.Steps) != 0 {
				t.Errorf("a changed step: %+v", got)
			}
			checkRefused(t, got, 4, "step open of run run-1")
			for _, steps := range []string{"", "{", `{"path":"x"}`, `{"path":"/x","key":"mine"}`, `[]`} {
				checkRefused(t, e.do(steps), 1, "invalid steps")
			}
			nowhere := newErrand(t, "http://"+freeAddress(t))
			got = nowhere.do(`{"step":"open","path":"/v1/tickets","budget":{"attempts":1}}`, "--json")
			if j := got.told(t); got.status != 4 || j.Steps[0].Outcome != "person" || j.Steps[0].Effect != "none" {
				t.Errorf("a target that is not there: %+v", got)
			}
		})
		t.Run("hands an unknown outcome over with all that is known, and how to look it up", func(t *testing.T) {
			e := newErrand(t, silent(t))
			e.settings = append(e.settings, "EINMAL_AGENT_TOKEN=")
			got := e.do(`{"step":"open","path":"/v1/tickets","budget":{"attempts":1,"deadline_seconds":1}}`)
			if got.status != 3 {
				t.Errorf("%+v", got)
			}
			for _, want := range []string{"unknown", "key ", "command", "POST http://", "attempt", "Don't send it under another key", "Idempotency-Key: "} {
				if !strings.Contains(got.out, want) {
					t.Errorf("it does not say %q:\n%s", want, got.out)
				}
			}
			if !strings.Contains(got.err, "open: ") {
				t.Errorf("nothing was told while it waited: %q", got.err)
			}
			status := run(t, e.settings, "agent", "status", "--json")
			if j := status.told(t); status.status != 3 || j.Steps[0].Outcome != "unknown" {
				t.Errorf("status: %+v", status)
			}
			if resumed := run(t, e.settings, "agent", "resume", "--json"); resumed.status != 3 || len(resumed.told(t).Steps) != 1 {
				t.Errorf("resume: %+v", resumed)
			}
		})
		t.Run("lists, shows and resumes", func(t *testing.T) {
			e := newErrand(t, at)
			e.do(openTicket + strings.Replace(openTicket, `"open"`, `"another"`, 1))
			if refused := e.do(`{"step":"bad","path":"/v1/tickets"}`); !strings.HasPrefix(refused.out, "refused  bad  created  422 validation-failed") {
				t.Errorf("do: %+v", refused)
			}
			list := run(t, e.settings, "agent", "list")
			if list.status != 0 || strings.Count(list.out, "\n") != 3 || !strings.Contains(list.out, "422 validation-failed") {
				t.Errorf("list: %+v", list)
			}
			show := run(t, e.settings, "agent", "show", "another")
			if show.status != 0 || !strings.Contains(show.out, "attempt") || strings.Contains(show.out, "step open of") {
				t.Errorf("show: %+v", show)
			}
			checkRefused(t, run(t, e.settings, "agent", "show", "third"), 1, "third", "list says")
			if !strings.Contains(list.out, "run run-1") {
				t.Errorf("list does not say the run: %+v", list)
			}
			for _, command := range []string{"status", "list", "resume"} {
				checkRefused(t, run(t, e.settings, "agent", command, "--run", "typo"), 1, "no run typo", "list says")
			}
			if resumed := run(t, e.settings, "agent", "resume"); resumed.status != 0 || resumed.out != "" {
				t.Errorf("resume: %+v", resumed)
			}
		})
		t.Run("goes on where a signal has ended it", func(t *testing.T) {
			proxy := silent(t)
			e := newErrand(t, proxy)
			cmd := command(t, e.settings, "agent", "do", "-", "--run", "run-1", "--target", proxy, "--json")
			cmd.Stdin = strings.NewReader(openTicket)
			var out strings.Builder
			cmd.Stdout = &out
			log, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := log.Read(make([]byte, 1)); err != nil { // it has begun to wait
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if j := (ended{out: out.String()}).told(t); cmd.ProcessState.ExitCode() != 3 || !strings.Contains(j.Steps[0].Reason, "told to end") {
				t.Errorf("exit status %d, %+v", cmd.ProcessState.ExitCode(), j)
			}
		})
	})
	t.Run("sends its token only where a flag says, whatever a step names", func(t *testing.T) {
		e := newErrand(t, "tickets=http://127.0.0.1:1")
		checkRefused(t, e.do(`{"path":"/x","target":"http://evil.example"}`), 1, "/target", `"tickets"`)
		checkRefused(t, e.do(`{"path":"/x","target":"tickets"}`, "--ability", "payments=keys"), 1, "payments")
		checkRefused(t, e.do(`{"path":"/x","target":"tickets"}`, "--ability", "tickets=everything"), 1, "everything")
	})
	t.Run("needs a journal and says how to name one", func(t *testing.T) {
		checkRefused(t, run(t, nil, "agent", "do", "-", "--run", "r", "--target", "http://127.0.0.1:1"), 1, "--journal")
		for _, command := range []string{"list", "status", "resume"} { // where nothing is, nobody has begun anything
			checkRefused(t, run(t, nil, "agent", command, "--journal", filepath.Join(t.TempDir(), "missing")), 1, "missing", "another file")
		}
		checkRefused(t, run(t, nil, "agent", "list"), 1, "set EINMAL_AGENT_JOURNAL")
		checkRefused(t, run(t, []string{"EINMAL_AGENT_JOURNL=x"}, "agent", "list"), 1, "EINMAL_AGENT_JOURNAL")
		for _, command := range [][]string{{"list"}, {"resume"}, {"do", "-", "--run", "r", "--target", "http://127.0.0.1:1"}} {
			checkRefused(t, run(t, []string{"EINMAL_AGENT_JOURNAL="}, append([]string{"agent"}, command...)...), 1, "set EINMAL_AGENT_JOURNAL")
		}
	})
	t.Run("says what a wrong call lacks, and whose help tells the rest", func(t *testing.T) {
		e := newErrand(t, "http://127.0.0.1:1")
		file := filepath.Join(t.TempDir(), "steps.jsonl")
		if err := os.WriteFile(file, []byte(openTicket+`{"path":"/x","key":"mine"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		checkRefused(t, run(t, e.settings, "agent", "do", file), 1, "--run=NAME", "see einmal agent do --help")
		checkRefused(t, run(t, e.settings, "agent", "show"), 1, "see einmal agent show --help")
		checkRefused(t, run(t, e.settings, "agent", "do", file, "--run", "r", "--target", e.target), 1, file+": invalid steps: step 2: /key is not known; a step has step, target")
		checkRefused(t, e.do(openTicket+`{"path":"x"}`), 1, "steps.jsonl: invalid steps: step 2: /path")
		if err := os.WriteFile(file, []byte(openTicket), 0o600); err != nil {
			t.Fatal(err)
		}
		checkRefused(t, run(t, e.settings, "agent", "do", file, "--run", "r"), 1, "give --target URL")
		checkRefused(t, run(t, e.settings, "agent", "do", file, "--run", "r", "--target", "mars="+e.target), 1, `the agent was given "mars"`)
		checkRefused(t, run(t, e.settings, "agent", "do", file, "--run", "r", "--target", "127.0.0.1:1"), 1, "such as http://127.0.0.1:8081")
		checkRefused(t, run(t, e.settings, "agent", "do", file, "--run", "my run", "--target", e.target), 1, "the name of a run has", "no spaces")
		for _, flag := range []string{"--attempts=0", "--deadline-seconds=0", "--longest-wait-seconds=0", "--attempts=-1"} {
			checkRefused(t, e.do(openTicket, flag), 1, "are 1 or more")
		}
		wrong := newErrand(t, e.target)
		wrong.settings[0] = "EINMAL_AGENT_TOKEN=two\nlines"
		refused := wrong.do(openTicket)
		checkRefused(t, refused, 1, "the token has a space, a line break")
		if strings.Contains(refused.err, "lines") {
			t.Errorf("it shows the token: %s", refused.err)
		}
	})
	t.Run("says that an open step which nobody has asked for is in the way", func(t *testing.T) {
		e := newErrand(t, "http://"+freeAddress(t))
		e.do(`{"step":"open","path":"/v1/tickets","budget":{"attempts":1}}`)
		got := e.do(`{"step":"next","path":"/v1/tickets"}`)
		if got.status != 4 || !strings.Contains(got.out, "nothing new of its run is begun before it is settled") || strings.Contains(got.out, "next") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("tells its exit statuses and what a step is in its help", func(t *testing.T) {
		for _, command := range [][]string{{"agent"}, {"agent", "do"}, {"agent", "resume"}} {
			help := run(t, nil, append(command, "--help")...)
			for _, status := range []string{"0  done", "1  it was called wrongly", "2  refused", "3  unknown", "4  a person is needed"} {
				if !strings.Contains(help.out, status) {
					t.Errorf("%s does not say %q:\n%s", command, status, help.out)
				}
			}
		}
		help := run(t, nil, "agent", "do", "--help").out
		step := reflect.TypeFor[agent.Step]()
		for i := range step.NumField() {
			if member := step.Field(i).Tag.Get("json"); !strings.Contains(help, `"`+member+`": `) {
				t.Errorf("it does not say what %s is:\n%s", member, help)
			}
		}
	})
	t.Run("goes on when what it says about a budget is done as it is written", func(t *testing.T) {
		for name, test := range map[string]struct{ step, flag string }{
			"of a step": {`,"budget":{"attempts":1}}`, ""},
			"of a run":  {`}`, "--attempts=1"},
		} {
			e := newErrand(t, loses(t, 1))
			step := strings.TrimSuffix(openTicket, "}")
			args := []string{"--json"}
			if test.flag != "" {
				args = append(args, test.flag)
			}
			j := e.do(step+test.step, args...).told(t)
			if j.ExitCode != 3 {
				t.Fatalf("%s: %+v", name, j)
			}
			advice := j.Steps[0].Advice
			var again ended
			if budget := regexp.MustCompile(`"budget": \{.*?\}`).FindString(advice); budget != "" {
				again = e.do(step+","+budget+"}", "--json")
			} else {
				flags := regexp.MustCompile(`--run .* \d+`).FindString(advice)
				again = run(t, e.settings, append([]string{"agent", "resume", "--json"}, strings.Fields(flags)...)...)
			}
			if got := again.told(t); got.ExitCode != 0 || len(got.Steps) != 1 || got.Steps[0].Key != j.Steps[0].Key {
				t.Errorf("%s: it said %q, and then: %+v", name, advice, again)
			}
		}
	})
}

// loses is a service that loses so many writes, and does those after them.
func loses(t *testing.T, writes int) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			problem.New(problem.OperationNotFound, "").Write(w)
			return
		}
		if writes--; writes >= 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Idempotency-Outcome", "executed")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// silent is a place where every request is read and none is answered.
func silent(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
