package record_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/e2e/record"
)

func TestTokensNeverBecomePartOfARecording(t *testing.T) {
	log := record.New()
	first, second := log.Caller("secret-1"), log.Caller("secret-1-more") // one begins with the other
	if first == second || log.Caller("secret-1") != first {
		t.Fatalf("callers are called %q and %q", first, second)
	}
	log.Message(record.Message{
		From: first, Path: "/v1/of/secret-1", Key: "key-secret-1-more", Body: `{"author":"secret-1"}`, Said: `{"by":"secret-1-more"}`, Err: "no secret-1",
	})
	log.Message(record.Message{Body: strings.Repeat("x", 490) + "secret-1 is cut here"})
	log.Database(record.Database{Tables: []record.Table{{
		Name: "operations", Columns: []string{"principal", "n", "evidence"}, Rows: [][]any{{"secret-1", int64(1), nil}, {"secret-1-more", 2.5, "said secret-1"}},
	}}})

	got := log.Read()
	if text := fmt.Sprint(got); strings.Contains(text, "secret") {
		t.Errorf("a token was recorded: %s", text)
	}
	want := [][]any{{first, int64(1), nil}, {second, 2.5, "said " + first}}
	if diff := cmp.Diff(want, got.Databases[0].Tables[0].Rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestLog(t *testing.T) {
	t.Run("records nothing where there is none", func(t *testing.T) {
		log := record.From(context.Background())
		log.Place(record.Place{})
		log.Message(record.Message{})
		log.Mark("", record.Ready, "")
		log.Part("")
		log.World(record.World{})
		log.Database(record.Database{})
		log.Close()
		if got := log.Read(); log.Caller("x") != "" || got.Messages != nil || got.Marks != nil {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("is the one of its context, until there is another", func(t *testing.T) {
		log := record.New()
		ctx := record.Into(context.Background(), log)
		if record.From(ctx) != log || record.From(record.Into(ctx, nil)) != nil {
			t.Error("the context has another log")
		}
	})
	t.Run("keeps the beginning of a body, as text", func(t *testing.T) {
		log := record.New()
		log.Message(record.Message{Body: strings.Repeat("ö", 100_000)})
		body := log.Read().Messages[0].Body
		if len(body) > 600 || !utf8.ValidString(body) || !strings.HasPrefix(body, "öö") {
			t.Errorf("%d bytes were kept: %q", len(body), body)
		}
	})
	t.Run("keeps nothing that comes when it is closed", func(t *testing.T) {
		log := record.New()
		log.Mark("a", record.Ready, "")
		log.Close()
		log.Mark("a", record.Killed, "")
		if got := len(log.Read().Marks); got != 1 {
			t.Errorf("%d marks", got)
		}
	})
	t.Run("is bounded, and says how much it did not keep", func(t *testing.T) {
		log := record.New()
		const came = 30_000
		for range came {
			log.Message(record.Message{})
		}
		got := log.Read()
		if len(got.Messages)+got.Dropped != came || got.Dropped == 0 {
			t.Errorf("%d messages and %d dropped of %d", len(got.Messages), got.Dropped, came)
		}
	})
	t.Run("is used by many at once", func(t *testing.T) {
		log := record.New()
		const many, each = 16, 100
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				for range each {
					log.Place(record.Place{Address: fmt.Sprint(i)})
					log.Message(record.Message{From: log.Caller(fmt.Sprint("token of ", i))})
					log.Mark(fmt.Sprint(i), record.Ready, "")
					log.Read()
				}
			})
		}
		all.Wait()
		if got := log.Read(); len(got.Messages) != many*each || len(got.Marks) != many*each || len(got.Places) != many {
			t.Errorf("%d messages, %d marks, %d places", len(got.Messages), len(got.Marks), len(got.Places))
		}
	})
}
