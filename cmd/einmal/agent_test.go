package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
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
			list := run(t, e.settings, "agent", "list")
			if list.status != 0 || strings.Count(list.out, "\n") != 2 {
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
		checkRefused(t, run(t, nil, "agent", "list", "--journal", filepath.Join(t.TempDir(), "missing")), 1, "missing")
		checkRefused(t, run(t, []string{"EINMAL_AGENT_JOURNL=x"}, "agent", "list"), 1, "EINMAL_AGENT_JOURNAL")
	})
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
