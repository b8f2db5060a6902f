package idemtest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// sameBytes takes no body for an empty one.
var sameBytes = cmp.Comparer(bytes.Equal)

func testReplay(t *testing.T, l *lab) {
	answers := map[string]idempotency.Answer{
		"with a location and a resource": created(),
		"without a location":             {State: idempotency.Succeeded, Status: 200, Body: []byte(`{"changed":false}`)},
		"without a body":                 {State: idempotency.Succeeded, Status: 204},
		"with an empty body":             {State: idempotency.Succeeded, Status: 200, Body: []byte{}},
		"of any bytes":                   {State: idempotency.Succeeded, Status: 200, Body: []byte("\x00\xff\xfe{\r\n\u2028 \\u0041 ' \" \\ ? $1 \n")},
		"of spaced JSON":                 {State: idempotency.Succeeded, Status: 200, Body: []byte("{ \"b\": 1.0,\n\t\"a\": 2 }\n")},
		"of half a megabyte":             {State: idempotency.Succeeded, Status: 200, Body: bytes.Repeat([]byte("0123456789abcdef"), 32<<10)},
		"of a failure":                   {State: idempotency.Failed, Status: 402, Location: "/x?y=%20#z", Body: []byte(`{"code":"payment-declined"}`)},
	}
	for name, answer := range answers {
		t.Run("an answer "+name+" is replayed byte for byte, by this process, after a restart and by another replica", func(t *testing.T) {
			c := l.caller(t)
			this := idempotency.New(l.db, idempotency.Options{})
			restarted := idempotency.New(l.db, idempotency.Options{})
			another := idempotency.New(l.connect(t, database.Options{}), idempotency.Options{})
			var w work
			first := c.do(this, c.request("k", 1), w.answering(answer))
			for range 2 { // the first time an Executor finds out, the second time it knows
				for _, x := range []*idempotency.Executor{this, restarted, another} {
					replay := c.do(x, c.request("k", 1), w.apply)
					c.wantOutcome(replay, idempotency.OutcomeReplayed)
					if diff := cmp.Diff(answer, replay.Answer, sameBytes); diff != "" {
						t.Errorf("answer (-first +replay):\n%s", diff)
					}
					if diff := cmp.Diff(first.Operation, replay.Operation, sameBytes); diff != "" {
						t.Errorf("operation (-first +replay):\n%s", diff)
					}
				}
			}
			c.wantRows("k", 1, 1)
			if w.runs.Load() != 1 {
				t.Errorf("ran %d times", w.runs.Load())
			}
		})
	}
	t.Run("times read the same in the first answer and in every replay", func(t *testing.T) {
		c := l.caller(t)
		var w work
		first := c.do(idempotency.New(l.db, idempotency.Options{}), c.request("k", 1), w.apply)
		replay := c.do(idempotency.New(l.db, idempotency.Options{}), c.request("k", 1), w.apply)
		for _, pair := range [][2]time.Time{
			{first.Operation.CreatedAt, replay.Operation.CreatedAt},
			{first.Operation.UpdatedAt, replay.Operation.UpdatedAt},
			{*first.Operation.CompletedAt, *replay.Operation.CompletedAt},
		} {
			one, two := pair[0].Format(time.RFC3339Nano), pair[1].Format(time.RFC3339Nano)
			if one != two || !strings.HasSuffix(one, "Z") {
				t.Errorf("%s, then %s; want one text, in UTC", one, two)
			}
		}
	})
	t.Run("a replay is what the database says, not what this process remembers", func(t *testing.T) {
		c := l.caller(t)
		x := idempotency.New(l.db, idempotency.Options{})
		var w work
		c.do(x, c.request("k", 1), w.apply)
		l.exec(t, "UPDATE operations SET response_body = ?, response_status = 299 WHERE account_id = ?", []byte("another"), c.account)
		if got := c.do(x, c.request("k", 1), w.apply).Answer; string(got.Body) != "another" || got.Status != 299 {
			t.Errorf("got %d %s", got.Status, got.Body)
		}
	})
	t.Run("an operation that the database has forgotten is executed again, not replayed from memory", func(t *testing.T) {
		c := l.caller(t)
		x := idempotency.New(l.db, idempotency.Options{})
		var w work
		c.do(x, c.request("k", 1), w.apply)
		l.exec(t, "DELETE FROM operations WHERE account_id = ?", c.account)
		c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeExecuted)
		c.wantRows("k", 2, 1)
	})
	t.Run("a column that a newer release adds meanwhile does not disturb this one", func(t *testing.T) {
		c := l.caller(t)
		x := idempotency.New(l.connect(t, database.Options{MaxConns: 1}), idempotency.Options{})
		var w work
		c.do(x, c.request("k", 1), w.apply)
		c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeReplayed) // its statement is prepared now
		l.exec(t, "ALTER TABLE operations ADD COLUMN idemtest_added text NOT NULL DEFAULT ''")
		c.wantOutcome(c.do(x, c.request("k", 1), w.apply), idempotency.OutcomeReplayed)
		c.wantOutcome(c.do(x, c.request("new", 1), w.apply), idempotency.OutcomeExecuted)
	})
	t.Run("what a caller does to the body that it got is its own business", func(t *testing.T) {
		c := l.caller(t)
		x := idempotency.New(l.db, idempotency.Options{})
		var w work
		first := c.do(x, c.request("k", 1), w.apply)
		want := bytes.Clone(first.Answer.Body)
		clear(first.Answer.Body)
		second := c.do(x, c.request("k", 1), w.apply)
		if !bytes.Equal(second.Answer.Body, want) {
			t.Errorf("got %q", second.Answer.Body)
		}
	})
}
