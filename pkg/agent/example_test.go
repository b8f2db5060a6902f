package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/agent"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

// A target whose commands name what they make: the business key is in the path. Sending the same again makes the same, so it is a target with keys.
func Example_businessKey() {
	invoices := map[string]bool{}
	var received atomic.Int64
	legacy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		invoices[r.URL.Path] = true
		if received.Add(1) == 1 {
			panic(http.ErrAbortHandler) // the answer is lost
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer legacy.Close()

	// businessKey:
	target, err := agent.NewTarget(legacy.URL, agent.Keys)
	if err != nil {
		panic(err)
	}
	report := do(target, `{"step": "invoice", "method": "PUT", "path": "/invoices/2026-117", "body": {"amount": "120.00"}}`)
	// :businessKey

	fmt.Println(report.Outcome, "after", len(report.Requests), "requests:", len(invoices), "invoice")
	// Output:
	// done after 2 requests: 1 invoice
}

// A target with an operation store of ours: its routes claim the key in the transaction of their rows, so the agent can ask what became of it.
func Example_operationStore() {
	e, closeAll := notes()
	defer closeAll()
	lost := false
	ours := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && !lost {
			lost = true
			e.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // it is done, and the answer is lost
		}
		e.ServeHTTP(w, r)
	}))
	defer ours.Close()

	// operationStore:
	target, err := agent.NewTarget(ours.URL, agent.Operations)
	if err != nil {
		panic(err)
	}
	report := do(target, `{"step": "note", "path": "/notes", "body": {"text": "hello"}}`)
	// :operationStore

	for _, request := range report.Requests {
		fmt.Println(request.Kind, request.Seen.Status, request.Seen.Reading)
	}
	fmt.Println(report.Outcome, string(report.Response.Body))
	// Output:
	// attempt 0 no answer
	// look 200 operation succeeded
	// done {"number":1}
}

// A target with neither: what may have been done is never sent again, and a person is asked.
func Example_neither() {
	var letters atomic.Int64
	legacy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		letters.Add(1)
		panic(http.ErrAbortHandler) // the letter is on its way, and the answer is lost
	}))
	defer legacy.Close()

	// neither:
	target, err := agent.NewTarget(legacy.URL, agent.None)
	if err != nil {
		panic(err)
	}
	report := do(target, `{"step": "letter", "path": "/letters", "body": {"to": "Hammer & Nail"}}`)
	// :neither

	fmt.Println(report.Outcome, "after", letters.Load(), "letter; exit status", report.ExitCode)
	fmt.Println(report.Advice)
	// Output:
	// unknown after 1 letter; exit status 3
	// It may have happened, and the target can't tell. Look there for what the command asks for before anything is sent: only if it is not there, name another step.
}

// do does one step with a journal of its own. A real agent has one journal, and keeps it.
func do(target agent.Target, step string) agent.Report {
	dir, err := os.MkdirTemp("", "agent-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	// do:
	steps, err := agent.ParseSteps([]byte(step))
	if err != nil {
		panic(err) // it says what is wrong; nothing was sent
	}
	journal, err := agent.Open(filepath.Join(dir, "journal"))
	if err != nil {
		panic(err)
	}
	defer journal.Close()
	a, err := agent.New(journal, agent.Config{Run: "nightly-42", Targets: map[string]agent.Target{"": target}})
	if err != nil {
		panic(err)
	}
	results, err := a.Do(context.Background(), steps)
	if err != nil {
		panic(err) // such as ErrStepChanged; the rest was not tried
	}
	// :do
	return results[0].Entry.Report()
}

// notes is a service of which a row is the whole effect.
func notes() (e *echo.Echo, closeAll func()) {
	dir, err := os.MkdirTemp("", "notes-")
	if err != nil {
		panic(err)
	}
	db, err := database.Open(context.Background(), "sqlite:"+filepath.Join(dir, "notes.db"), database.Options{})
	if err != nil {
		panic(err)
	}
	if err := migrations.Up(context.Background(), db, migrations.Shared); err != nil {
		panic(err)
	}
	exec := idempotency.New(db, idempotency.Options{})
	caller := func(echo.Context) idemhttp.Caller { return idemhttp.Caller{Account: "acme", Principal: "agent-7"} }
	e = echo.New()
	e.POST("/notes", func(c echo.Context) error {
		call, err := idemhttp.Begin(c, caller(c))
		if err != nil {
			return err
		}
		var n newNote
		if err := call.Decode(&n); err != nil {
			return err
		}
		result, err := exec.Do(c.Request().Context(), call.Request("note.create", &n), func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
			return idemhttp.Success(http.StatusCreated, map[string]int{"number": len(strings.Fields(n.Text))})
		})
		if err != nil {
			return err
		}
		return idemhttp.Write(c, result)
	})
	e.GET("/v1/operations", idemhttp.Operations{Executor: exec, Caller: caller}.List)
	return e, func() { db.Close(); os.RemoveAll(dir) }
}

type newNote struct {
	Text string `json:"text"`
}

func (*newNote) Validate() []problem.Violation { return nil }
