package payments_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/payments"
)

// forgetful are retentions that end at once.
func forgetful(c *payments.Config) {
	c.ResponseRetention, c.TombstoneRetention, c.PurgeEvery = time.Millisecond, time.Millisecond, 10*time.Millisecond
}

// awaits waits until there are so many rows.
func (r running) awaits(table string, want int64) {
	r.t.Helper()
	for deadline := time.After(patience); r.count(table) != want; {
		select {
		case <-deadline:
			r.t.Fatalf("%d rows in %s, want %d", r.count(table), table, want)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// against compares with the provider's ledger.
func (r running) against(want ...string) {
	r.t.Helper()
	violations, err := payments.Ledger.Against(r.t.Context(), r.db, r.psp.URL)
	if err != nil {
		r.t.Fatal(err)
	}
	var got []string
	for _, v := range violations {
		got = append(got, v.Check)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Error(diff)
	}
}

func TestForgottenOperations(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		captured, canceled := s.captured("captured"), s.authorized("canceled")
		s.authorized("authorized")
		s.refund("r1", captured.ID, "2.50", wait)
		s.approved("r2", s.refund("r2", captured.ID, "1"))
		s.cancel("x", canceled.ID, wait)
		captured, canceled = s.payment(captured.ID), s.payment(canceled.ID)
		refunds := read[any](s, "/v1/payments/"+captured.ID+"/refunds")
		s.healthy()
		s.against()
		s.replica(forgetful)
		s.awaits("operations", 0)

		t.Run("leave the money as it was, here and at the provider", func(t *testing.T) {
			s := s.at(t)
			s.healthy()
			s.against()
			if diff := cmp.Diff([]payment{captured, canceled}, []payment{s.payment(captured.ID), s.payment(canceled.ID)}); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(refunds, read[any](s, "/v1/payments/"+captured.ID+"/refunds")); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("leave an order with its one payment", func(t *testing.T) {
			s := s.at(t)
			expect(t, "another payment", s.pay("forgotten", "captured"), 409, "order-not-payable")
			expect(t, "another payment", s.pay("forgotten-2", "authorized"), 409, "order-busy")
		})
		t.Run("leave evidence against them something to be compared with", func(t *testing.T) {
			s := s.at(t)
			s.disposed(s.tell(about(captured, "payment_intent.canceled", "canceled", 0)), "contradicted")
		})
	})
}

func TestReviewedObjectsAreForgotten(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind, func(c *payments.Config) { c.UnmatchedAfter = 10 * time.Millisecond })
		for _, id := range []string{"pi_one", "pi_two"} {
			s.disposed(s.tell(event("payment_intent.created", "payment_intent", id, "requires_confirmation", 0)), "unmatched")
		}
		s.awaits("reviews", 2)
		s.As("demo-operator").Send(t, "POST", "/v1/reviews/"+s.reviews()[0].ID+"/resolution", `{"evidence":"Ours, from the old shop."}`, key("resolve"))
		if n := s.count("unmatched"); n != 2 {
			t.Errorf("%d kept", n)
		}
		s.replica(forgetful)
		s.awaits("unmatched", 1)
		s.awaits("operations", 0)
		if n := s.count("unmatched"); n != 1 { // nobody has decided about the other
			t.Errorf("%d kept", n)
		}
		if n := len(s.reviews()); n != 2 {
			t.Errorf("%d reviews", n)
		}
		s.healthy()
	})
}

func TestTheLedgerIsCompared(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		p := s.captured("o")
		exec := func(statement string) {
			t.Helper()
			if err := s.db.Read(t.Context()).Exec(statement).Error; err != nil {
				t.Fatal(err)
			}
		}
		s.against()
		exec("UPDATE payments SET amount_minor = amount_minor + 1")
		s.against("the ledger tells what was asked for: account, amount, digest")
		exec("UPDATE payments SET amount_minor = amount_minor - 1")
		exec("UPDATE effects SET state = 'failed' WHERE target = 'psp_capture'")
		s.against("what failed or was canceled is not in the ledger, or was undone, or a person was asked")
		exec("UPDATE effects SET state = 'unknown' WHERE target = 'psp_capture'")
		s.against()
		exec("UPDATE effects SET state = 'succeeded', effect_key = 'k', reference = '' WHERE target = 'psp_capture'")
		exec("UPDATE payments SET reference = 'pi_none'")
		s.against("what has succeeded is in the ledger, once", "every entry of the ledger has its effect here")
		exec("UPDATE payments SET reference = '" + p.Reference + "'")
		exec("UPDATE effects SET reference = '" + p.Reference + "' WHERE target = 'psp_capture'")
		s.against() // done by somebody else, to the same payment
	})
}
