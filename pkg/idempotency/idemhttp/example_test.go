package idemhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"gorm.io/gorm"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

// createNote is what a client sends; insertNote is what an existing service does with it.
type createNote struct {
	Text string `json:"text"`
}

type note struct {
	Number int    `json:"number"`
	Text   string `json:"text"`
}

func insertNote(db *gorm.DB, n createNote) (note, error) {
	made := note{Text: n.Text}
	err := db.Raw("INSERT INTO notes (text) VALUES (?) RETURNING number", n.Text).Scan(&made.Number).Error
	return made, err
}

// retriedRoute is a route as it is in many services: whoever sends its request again makes a second note.
func retriedRoute(e *echo.Echo, db *gorm.DB) {
	// before:
	e.POST("/notes", func(c echo.Context) error {
		var n createNote
		if err := c.Bind(&n); err != nil {
			return err
		}
		made, err := insertNote(db, n)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusCreated, made)
	})
	// :before
}

// safeRoute is the same route, safe to retry. TestTheExampleChangesFewLines counts what had to be written.
func safeRoute(e *echo.Echo, db *database.DB) {
	// after:
	exec := idempotency.New(db, idempotency.Options{})
	e.POST("/notes", func(c echo.Context) error {
		call, err := idemhttp.Begin(c, whoCalls(c))
		if err != nil {
			return err
		}
		var n createNote
		if err := call.Decode(&n); err != nil {
			return err
		}
		result, err := exec.Do(c.Request().Context(), call.Request("note.create", &n), func(tx database.Tx, _ idempotency.Operation) (idempotency.Answer, error) {
			made, err := insertNote(tx.DB, n)
			if err != nil {
				return idempotency.Answer{}, err
			}
			return idemhttp.Success(http.StatusCreated, made)
		})
		if err != nil {
			return err
		}
		return idemhttp.Write(c, result)
	})
	// :after

	// operations:
	operations := idemhttp.Operations{Executor: exec, Caller: whoCalls}
	e.GET("/v1/operations", operations.List) // with an Idempotency-Key: what became of it
	e.GET("/v1/operations/:id", operations.Get)
	// :operations
}

// after:
func (*createNote) Validate() []problem.Violation { return nil }

// :after

// whoCalls tells what the application's own authentication has found out.
func whoCalls(echo.Context) idemhttp.Caller {
	return idemhttp.Caller{Account: "acme", Principal: "agent-7"}
}

// A route that is safe to retry. The claim of its key, its rows and its answer are one transaction: whatever dies in between,
// there is one note, and whoever sends the request again gets the same answer.
func Example() {
	retried := func(e *echo.Echo, db *database.DB) { retriedRoute(e, db.Read(context.Background())) }
	for _, route := range []func(*echo.Echo, *database.DB){retried, safeRoute} {
		app, db, closeAll := application()
		route(app, db)
		for range 2 { // as if the first answer had got lost
			request := httptest.NewRequest("POST", "/notes", strings.NewReader(`{"text":"hello"}`))
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Idempotency-Key", "say-hello")
			answer := httptest.NewRecorder()
			app.ServeHTTP(answer, request)
			fmt.Println(strings.Join(strings.Fields(fmt.Sprintln(answer.Code, answer.Header().Get("Idempotency-Outcome"), answer.Body)), " "))
		}
		closeAll()
	}
	// Output:
	// 201 {"number":1,"text":"hello"}
	// 201 {"number":2,"text":"hello"}
	// 201 executed {"number":1,"text":"hello"}
	// 201 replayed {"number":1,"text":"hello"}
}

// application is an echo application with a database. What it needs beside its routes, once: the shared tables, answers that
// nobody caches, an error handler that answers problems, and the pages that these name.
func application() (app *echo.Echo, db *database.DB, closeAll func()) {
	dir, err := os.MkdirTemp("", "notes-")
	if err != nil {
		panic(err)
	}
	db, err = database.Open(context.Background(), "sqlite:"+filepath.Join(dir, "notes.db"), database.Options{})
	if err != nil {
		panic(err)
	}
	if err := migrations.Up(context.Background(), db, migrations.Shared); err != nil {
		panic(err)
	}
	if _, err := db.SQL().ExecContext(context.Background(), "CREATE TABLE notes (number integer PRIMARY KEY, text text)"); err != nil {
		panic(err)
	}
	app = echo.New()
	// once:
	app.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
			return next(c)
		}
	})
	app.HTTPErrorHandler = func(err error, c echo.Context) {
		p, ok := idemhttp.StoreProblem(err)
		if ok || errors.As(err, &p) {
			p.Write(c.Response())
			return
		}
		app.DefaultHTTPErrorHandler(err, c)
	}
	app.GET(problem.PagePath+":code", func(c echo.Context) error {
		page, ok := problem.Page(problem.Code(c.Param("code")))
		if !ok {
			return echo.ErrNotFound
		}
		return c.HTMLBlob(http.StatusOK, page)
	})
	// :once
	return app, db, func() { db.Close(); os.RemoveAll(dir) }
}

// What the answers of the example name is there: the page of a problem, the operation that it is about.
func TestTheExampleAnswersWhatItNames(t *testing.T) {
	app, db, closeAll := application()
	defer closeAll()
	safeRoute(app, db)
	send := func(method, path, body string) *httptest.ResponseRecorder {
		request := httptest.NewRequest(method, path, strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", "say-hello")
		answer := httptest.NewRecorder()
		app.ServeHTTP(answer, request)
		if got := answer.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s %s: Cache-Control %q", method, path, got)
		}
		return answer
	}
	send("POST", "/notes", `{"text":"hello"}`)
	var p problem.Problem
	if err := json.Unmarshal(send("POST", "/notes", `{"text":"goodbye"}`).Body.Bytes(), &p); err != nil || p.Code != problem.IdempotencyKeyReused {
		t.Fatalf("got %+v, %v", p, err)
	}
	for _, path := range []string{problem.TypeURL(p.Code), p.Instance, "/v1/operations"} {
		if answer := send("GET", path, ""); answer.Code != http.StatusOK {
			t.Errorf("GET %s: %d %s", path, answer.Code, answer.Body)
		}
	}
}

// What Example shows stays as little as it says: at most 15 lines are new or changed. A changed line is one that has to be
// written, so it counts once; lines that only go are told, too.
func TestTheExampleChangesFewLines(t *testing.T) {
	const most = 15
	before, after := region(t, "before"), region(t, "after")
	kept := common(before, after)
	written, gone := len(after)-kept, len(before)-kept
	t.Logf("%d lines written, %d of %d gone", written, gone, len(before))
	if written > most || kept == 0 {
		t.Errorf("%d lines have to be written (%d are kept); at most %d may", written, kept, most)
	}
}

// region is the lines of this file between "// name:" and "// :name", wherever that stands, with their white space.
func region(t *testing.T, name string) (lines []string) {
	t.Helper()
	file, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for line := range strings.Lines(string(file)) {
		switch strings.TrimSpace(line) {
		case "// " + name + ":":
			inside = true
		case "// :" + name:
			inside = false
		case "":
		default:
			if inside {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) == 0 {
		t.Fatalf("example_test.go has no region %q", name)
	}
	return lines
}

// common is how many lines two texts have in common, in order: what a diff leaves unmarked.
func common(a, b []string) int {
	longest := make([]int, len(b)+1) // of a as far as it has been looked at, and each beginning of b
	for _, line := range a {
		diagonal := 0
		for j := range b {
			above := longest[j+1]
			if line == b[j] {
				longest[j+1] = diagonal + 1
			} else {
				longest[j+1] = max(above, longest[j])
			}
			diagonal = above
		}
	}
	return longest[len(b)]
}
