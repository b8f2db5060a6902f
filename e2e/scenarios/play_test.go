package scenarios_test

import (
	"context"
	"database/sql"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/scenarios"
	"github.com/einmal/einmal/services/simulator"
)

// A laboratory that finds nothing looks just as good as services that do nothing wrong. These scenarios all have something wrong.
func TestPlayFindsWhatIsWrong(t *testing.T) {
	binary, err := harness.Build(t.Context(), t.TempDir())
	must(t, err)
	lab, err := harness.New(t.Context(), harness.Options{Binary: binary, Database: "sqlite"})
	must(t, err)
	t.Cleanup(func() { must(t, lab.Close()) })

	create := func(s *scenarios.Stage, service *harness.Service) {
		s.Executed("a ticket", s.Create(service.URL(), s.NewKey(), s.NewTicket().JSON()))
	}
	for _, test := range []struct {
		name    string
		injects bool
		run     func(s *scenarios.Stage) int
		want    string
	}{
		{"a second effect", false, func(s *scenarios.Stage) int {
			service := s.Serve("")
			create(s, service)
			create(s, service)
			return 1
		}, "2 tickets are in the database, want 1"},
		{"a fault that never happened", true, func(s *scenarios.Stage) int {
			s.HTTPProxy(s.Serve(""))
			return 0
		}, "no fault happened"},
		{"a database that contradicts itself", false, func(s *scenarios.Stage) int {
			create(s, s.Serve(""))
			db, err := sql.Open("sqlite", s.DatabasePath())
			if err == nil {
				_, err = db.ExecContext(context.Background(), "DELETE FROM tickets")
				db.Close()
			}
			s.Check(err == nil, "%v", err)
			return 0
		}, "einmal fsck"},
		{"a service that crashed unnoticed", false, func(s *scenarios.Stage) int {
			service := s.Serve("")
			s.Check(syscall.Kill(service.Pid(), syscall.SIGKILL) == nil, "kill failed")
			return 0
		}, "terminate tickets: signal: killed"},
		{"an answer that is not as promised", false, func(s *scenarios.Stage) int {
			service := s.Serve("")
			s.Executed("a ticket without a key", s.Create(service.URL(), "", s.NewTicket().JSON()))
			return 0
		}, "a ticket without a key: got 400"},
		{"a mirror that is neither final nor with a person", true, func(s *scenarios.Stage) int {
			return s.OneAbility(func(p *scenarios.Part) int {
				replica := p.Replica(p.Desk().URL())
				p.Desk().NextSend(simulator.Before, simulator.Hang)
				p.Mirror(replica)
				p.Desk().AwaitFired(1)
				p.Kill(replica)
				return 0
			})
		}, "none: 1 mirrors are neither final nor with a person"},
		{"an effect outside that nobody spoke of", true, func(s *scenarios.Stage) int {
			return s.OneAbility(func(p *scenarios.Part) int {
				replica := p.Replica(p.Desk().URL())
				p.Succeeds(replica, p.Mirror(replica))
				p.Kill(replica)
				return 0
			})
		}, "1 effects are in the desk's ledger, want 0"},
		{"a part in which nothing went wrong", true, func(s *scenarios.Stage) int {
			return s.OneAbility(func(*scenarios.Part) int { return 0 })
		}, "none: no fault happened"},
		{"a log that tells a key", false, func(s *scenarios.Stage) int {
			service, key := s.Serve(""), s.NewKey()
			s.Do(harness.Call{Base: service.URL(), Method: "GET", Path: "/v1/nothing", Header: http.Header{"X-Request-Id": {key}}})
			return 0
		}, "what the services have logged tells \"key-1-"},
		{"a problem that tells a key", false, func(s *scenarios.Stage) int {
			service, key := s.Serve(""), s.NewKey()
			s.Do(harness.Call{Base: service.URL(), Method: "GET", Path: "/v1/tickets/" + key})
			return 0
		}, "a problem tells \"key-1-"},
		{"a scenario that panics", false, func(*scenarios.Stage) int {
			panic("at the wrong moment")
		}, "panic: at the wrong moment"},
	} {
		t.Run(test.name, func(t *testing.T) {
			outcome := scenarios.New(test.injects, test.run).Play(t.Context(), lab, 1)
			if outcome.Err == nil || !strings.Contains(outcome.Err.Error(), test.want) {
				t.Fatalf("got %v, want an error that says %q", outcome.Err, test.want)
			}
		})
	}
	for _, test := range []struct {
		name string
		do   func(psp *scenarios.PSP, order, reference string) // behind the service's back
		want string
	}{
		{"an order that is charged twice", func(psp *scenarios.PSP, order, _ string) {
			psp.Itself("/payment_intents", "amount=10000&currency=eur&capture_method=manual&payment_method=pm_card_visa&confirm=true"+
				"&metadata[account_id]=acme&metadata[order_id]="+order)
		}, "violated: every entry of the ledger has its effect here"},
		{"books that do not say what was captured", func(psp *scenarios.PSP, _, reference string) {
			psp.Itself("/payment_intents/"+reference+"/capture", "")
		}, "violated: every entry of the ledger has its effect here"},
		{"a refund that happened twice", func(psp *scenarios.PSP, _, reference string) {
			psp.Itself("/payment_intents/"+reference+"/capture", "")
			for range 2 {
				psp.Itself("/refunds", "amount=1&metadata[einmal_effect_key]=k&payment_intent="+reference)
			}
		}, "violated: nothing is in the ledger twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			outcome := scenarios.New(false, func(s *scenarios.Stage) int {
				till := s.BriskTill()
				replica := till.Replica()
				order := till.NewOrder(replica)
				paid := till.Done(replica, till.Pays(order))
				test.do(till.Provider(), order.ID, till.State(replica, paid).Text("reference"))
				return 1
			}).Play(t.Context(), lab, 1)
			if outcome.Err == nil || !strings.Contains(outcome.Err.Error(), test.want) {
				t.Fatalf("got %v, want an error that says %q", outcome.Err, test.want)
			}
		})
	}
	t.Run("two effects under one key", func(t *testing.T) {
		outcome := scenarios.KeysIgnored().Play(t.Context(), lab, 1)
		if outcome.Err == nil || !strings.Contains(outcome.Err.Error(), "violated: nothing is in the ledger twice") {
			t.Fatalf("got %v, want an error about two effects", outcome.Err)
		}
	})
	t.Run("and says of what it can't play why", func(t *testing.T) {
		outcome := scenarios.New(true, func(s *scenarios.Stage) int {
			s.Skipf("no moon tonight")
			return 0
		}).Play(t.Context(), lab, 1)
		if outcome.Err != nil || outcome.Skipped != "no moon tonight" || outcome.Injected != nil {
			t.Fatalf("got %+v", outcome)
		}
	})
	t.Run("and passes what is right", func(t *testing.T) {
		outcome := scenarios.New(true, func(s *scenarios.Stage) int {
			service := s.Serve("")
			create(s, service)
			s.Kill(service)
			return 1
		}).Play(t.Context(), lab, 1)
		if outcome.Err != nil || outcome.Effects != 1 || *outcome.Injected != 1 {
			t.Fatalf("got %+v", outcome)
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
