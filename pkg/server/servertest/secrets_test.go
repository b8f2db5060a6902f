package servertest_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
	"github.com/einmal/einmal/pkg/server/servertest"
)

// handler is what a handler of a service that tells secrets has at hand.
type handler struct {
	ctx    context.Context
	log    *slog.Logger
	events *audit.Log
	header http.Header
	body   string
}

// A secret is found wherever a service tells it, and what may be told is not taken for one.
func TestASecretThatIsTold(t *testing.T) {
	const (
		text = "what nobody else may \"read\""
		body = `{"name":"what nobody else may \"read\"","reason":"The payee is another."}`
	)
	key := servertest.Key("k")
	for name, c := range map[string]struct {
		path   string // empty: /v1/things
		handle func(in handler) error
		want   string // part of what is wrong; empty: nothing is
	}{
		"a key, in the log": {
			handle: func(in handler) error {
				in.log.Debug("claimed", slog.String("key", in.header.Get("Idempotency-Key")))
				return nil
			},
			want: `the log line "claimed", in /key, tells a token or a key`,
		},
		"a token, in an error that is logged": {
			handle: func(in handler) error {
				in.log.Debug("refused", slog.Any("error", errors.New("nobody has "+strings.TrimPrefix(in.header.Get("Authorization"), "Bearer "))))
				return nil
			},
			want: `the log line "refused", in /error, tells a token or a key`,
		},
		"headers, in a group of the log": {
			handle: func(in handler) error {
				in.log.Debug("got", slog.Group("request", slog.Any("headers", in.header)))
				return nil
			},
			want: `the log line "got", in /request/headers, tells an Authorization header`,
		},
		"a body, as bytes in the log": {
			handle: func(in handler) error {
				in.log.Debug("got", slog.Any("body", []byte(in.body)))
				return nil
			},
			want: `the log line "got", in /body, tells a body`,
		},
		"a text of the body, quoted in the log": {
			handle: func(in handler) error {
				in.log.Debug("got", slog.String("error", `no thing is called "what nobody else may \"read\""`))
				return nil
			},
			want: `the log line "got", in /error, tells the body's /name`,
		},
		"a text of the body, in a problem": {
			handle: func(handler) error {
				return problem.New(problem.NotFound, "No thing is called "+text+".")
			},
			want: `the problem, in /detail, tells the body's /name`,
		},
		"a key, in place of its hash in an event": {
			handle: func(in handler) error {
				in.events.Note(in.ctx, idempotency.Event{Type: idempotency.Denied, Account: "acme", At: time.Now(), KeyHash: in.header.Get("Idempotency-Key")})
				return nil
			},
			want: `the event column key_hash tells a token or a key`,
		},
		"a reason, to whoever may know it": {
			path: "/v1/approvals/1/decision",
			handle: func(handler) error {
				return problem.New(problem.ApprovalRejected, "A person has said no: The payee is another.")
			},
		},
		"a reason, to somebody else": {
			handle: func(handler) error {
				return problem.New(problem.ApprovalRejected, "A person has said no: The payee is another.")
			},
			want: `the problem, in /detail, tells the body's /reason`,
		},
		"a reason that one may know, in the log": {
			path: "/v1/approvals/1/decision",
			handle: func(in handler) error {
				in.log.Debug("decided", slog.String("reason", "The payee is another."))
				return nil
			},
			want: `the log line "decided", in /reason, tells the body's /reason`,
		},
		"nothing": {
			handle: func(in handler) error {
				hash := idempotency.Key(key).Hash()
				in.log.Debug("claimed", slog.String("key_hash", hash), slog.String("principal", "demo-agent"))
				in.events.Note(in.ctx, idempotency.Event{Type: idempotency.Denied, Account: "acme", At: time.Now(), KeyHash: hash})
				return problem.New(problem.Unauthenticated, "Send Authorization: Bearer and a token.")
			},
		},
	} {
		found := &report{}
		t.Run(name, func(t *testing.T) {
			found.TB = t
			db := dbtest.Open(t, database.SQLite)
			events := audit.Open(db)
			t.Cleanup(events.Close)
			secrets := servertest.KeepSecrets(found, db.SQL())
			s := serve(found, secrets, secrets.Log, func(e echo.Context) error {
				sent, err := io.ReadAll(e.Request().Body)
				if err != nil {
					return err
				}
				return c.handle(handler{e.Request().Context(), secrets.Log, events, e.Request().Header, string(sent)})
			})
			s.As("demo-agent").Send(found, "POST", cmp.Or(c.path, "/v1/things"), body, "Idempotency-Key: "+key)
		})
		if all := strings.Join(found.errors, "\n"); (all == "") != (c.want == "") || !strings.Contains(all, c.want) {
			t.Errorf("%s: found %q, want %q", name, all, c.want)
		}
	}
}

func TestALogThatIsElsewhere(t *testing.T) {
	found := &report{}
	t.Run("is found", func(t *testing.T) {
		found.TB = t
		serve(found, servertest.KeepSecrets(found), slog.New(slog.DiscardHandler), nil)
	})
	if all := strings.Join(found.errors, "\n"); !strings.Contains(all, "the service logs somewhere else") {
		t.Errorf("found %q", all)
	}
}

// serve runs a service that handles everything alike.
func serve(t testing.TB, secrets *servertest.Secrets, log *slog.Logger, handle echo.HandlerFunc) *servertest.Server {
	t.Helper()
	config := server.Config{Listen: "127.0.0.1:0", ShutdownGrace: 5 * time.Second, TokensFile: servertest.Tokens(t)}
	srv, err := server.New(config, server.Service{Name: "things", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	srv.Echo().POST("/v1/*", handle, server.Require(server.Writers...))
	return servertest.StartUndocumented(t, srv, secrets)
}
