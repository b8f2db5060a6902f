package payments_test

import (
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/problem"
)

// A person may say that what was done otherwise counts. Then the books say what was seen, or the word is refused.
func TestTheBooksSayWhatWasSeen(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		p := s.authorized("o")
		s.done(s.capture("c", p.ID, "12.50", wait), "captured")

		// other makes a refund of which the provider shows another amount than was asked for, in minor units.
		other := func(k, amount, shown string) operation {
			s.psp.arm("refund", "before", "reset")
			s.psp.arm("list_refunds", "before", "status", `"status":500`, `"times":1000`)
			op := s.accepted(s.refund(k, p.ID, amount))
			if op.State == "awaiting_approval" { // all but the first
				if yes := s.decide("approve-"+k, op, "approve"); yes.Status != 200 {
					t.Fatalf("%s", yes)
				}
			}
			var effectKey string
			if err := s.db.Read(t.Context()).Raw("SELECT effect_key FROM effects WHERE operation_id = ?", op.ID).Scan(&effectKey).Error; err != nil {
				t.Fatal(err)
			}
			s.becomes(op.ID, "is unknown", func(op operation) bool { return op.State == "unknown" })
			s.psp.does("refunds", "payment_intent="+p.Reference+"&amount="+shown+"&metadata[einmal_effect_key]="+effectKey)
			s.psp.Disarm()
			return s.becomes(op.ID, "is with a person", func(op operation) bool { return op.ReviewID != "" })
		}
		resolve := func(op operation, k, state string) (status int, told problem.Problem) {
			a := s.As("demo-operator").Send(t, "POST", "/v1/reviews/"+op.ReviewID+"/resolution", `{"state":"`+state+`","evidence":"As the payee says."}`, key("%s", k))
			if a.Status != 200 {
				told = a.Problem(t)
			}
			return a.Status, told
		}

		t.Run("of a refund of less, and of more, as long as that was captured", func(t *testing.T) {
			for _, c := range []struct {
				k, asked, shown string
				refunded        int64
			}{{"less", "4.00", "300", 300}, {"more", "2.00", "250", 550}} {
				op := other(c.k, c.asked, c.shown)
				if status, _ := resolve(op, "yes-"+c.k, "succeeded"); status != 200 {
					t.Fatal(status)
				}
				s.ends(op.ID, "succeeded")
				if got := s.payment(p.ID); got.RefundedMinor != c.refunded {
					t.Errorf("%s: %+v", c.k, got)
				}
			}
		})
		t.Run("of no refund of more than is left, and a no still counts", func(t *testing.T) {
			op := other("beyond", "6.00", "650")
			if err := s.db.Read(t.Context()).Exec("UPDATE effects SET shown = '1000 eur' WHERE operation_id = ?", op.ID).Error; err != nil {
				t.Fatal(err)
			}
			status, told := resolve(op, "yes-beyond", "succeeded")
			if status != 422 || len(told.Errors) != 1 || told.Errors[0].Pointer != "/state" || !strings.Contains(told.Errors[0].Detail, "no more than 700") {
				t.Errorf("%d %+v", status, told)
			}
			if status, _ := resolve(op, "no-beyond", "failed"); status != 200 {
				t.Error(status)
			}
		})
		s.healthy()
	})
}
