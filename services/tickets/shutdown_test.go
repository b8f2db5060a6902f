package tickets_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/server/servertest"
	"github.com/einmal/einmal/services/tickets"
)

// Every creation that was answered is there; what was not answered is there or not, but never half.
func TestAShutdownAmongWrites(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		var writers sync.WaitGroup
		var mu sync.Mutex
		answered := map[string]bool{}
		enough := make(chan struct{})
		for i := range 8 {
			writers.Go(func() {
				for j := 0; ; j++ {
					request, err := s.agent().Request(t, "POST", "/v1/tickets", strings.NewReader(`{"project":"ops","title":"t"}`), key("k%d.%d", i, j))
					if err != nil {
						t.Error(err)
						return
					}
					a, err := s.Exchange(t, request)
					if err != nil {
						return // the door is closed
					}
					if a.Status != 201 {
						t.Errorf("%s", a)
						return
					}
					mu.Lock()
					answered[ticketOf(t, a).ID] = true
					if len(answered) == 20 {
						close(enough)
					}
					mu.Unlock()
				}
			})
		}
		<-enough
		if err := s.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		writers.Wait()

		var rows []string
		if err := s.db.Read(t.Context()).Table("tickets").Pluck("id", &rows).Error; err != nil {
			t.Fatal(err)
		}
		for _, id := range rows {
			delete(answered, id)
		}
		if len(answered) > 0 {
			t.Errorf("%d of the answered tickets are not there", len(answered))
		}
		if ops := s.count(t, "operations"); ops != int64(len(rows)) {
			t.Errorf("%d operations, %d tickets", ops, len(rows))
		}
		s.healthy(t)
	})
}

// Who waits for an operation that will not end soon is told how it stands, and keeps nobody from leaving.
func TestAShutdownAmongThoseWhoWait(t *testing.T) {
	s := start(t, database.SQLite, func(c *tickets.Config) { c.ProviderURL = "http://127.0.0.1:1" }) // nobody is there
	_, id := s.mirrored(t, "k", "ops")
	var answer servertest.Answer
	var waiting sync.WaitGroup
	waiting.Go(func() { answer = s.agent().Send(t, "GET", "/v1/operations/"+id, "", "Prefer: wait=30") })
	s.waitForRequests(t, 1)
	began := time.Now()
	if err := s.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	waiting.Wait()
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
	if answer.Status != 200 || !strings.Contains(string(answer.Body), `"next_action":"poll_operation"`) {
		t.Errorf("%s", answer)
	}
}
