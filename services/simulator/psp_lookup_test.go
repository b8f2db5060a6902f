package simulator_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v82"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

func TestLookUpsAtThePaymentProvider(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("a list shows everything at once, the newest first, page by page", func(t *testing.T) {
			s := openShop(t, kind)
			s.abilities(`{"target":"psp","keys":"honour","lookup":true,"lag_ms":3600000,"close":true}`)
			var want []string
			for i := range 7 {
				want = append(want, must(s.create(fmt.Sprint("k", i), ""))(t).ID)
			}
			slices.Reverse(want)
			var got []string
			p := &stripe.PaymentIntentListParams{}
			p.Limit = stripe.Int64(3)
			for i, err := range s.stripe.V1PaymentIntents.List(t.Context(), p) {
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(order, i.Metadata); diff != "" {
					t.Error(diff)
				}
				got = append(got, i.ID)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})

		t.Run("a list narrows by when intents were created", func(t *testing.T) {
			s := openShop(t, kind)
			first := must(s.create("k1", ""))(t)
			s.pass(time.Hour)
			second := must(s.create("k2", ""))(t)
			for _, c := range []struct {
				bound stripe.RangeQueryParams
				want  []string
			}{
				{stripe.RangeQueryParams{GreaterThanOrEqual: second.Created}, []string{second.ID}},
				{stripe.RangeQueryParams{GreaterThan: first.Created}, []string{second.ID}},
				{stripe.RangeQueryParams{GreaterThan: second.Created}, nil},
				{stripe.RangeQueryParams{LesserThan: second.Created}, []string{first.ID}},
				{stripe.RangeQueryParams{LesserThanOrEqual: first.Created}, []string{first.ID}},
				{stripe.RangeQueryParams{LesserThan: first.Created}, nil},
				{stripe.RangeQueryParams{GreaterThanOrEqual: first.Created, LesserThanOrEqual: second.Created}, []string{second.ID, first.ID}},
			} {
				var got []string
				for i, err := range s.stripe.V1PaymentIntents.List(t.Context(), &stripe.PaymentIntentListParams{CreatedRange: &c.bound}) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, i.ID)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%+v: %s", c.bound, diff)
				}
			}
		})

		t.Run("a search finds by metadata, after its lag", func(t *testing.T) {
			s := openShop(t, kind)
			s.abilities(`{"target":"psp","keys":"honour","lookup":true,"lag_ms":60000,"close":true}`)
			id := must(s.create("k", ""))(t).ID
			s.form("/payment_intents", create+"&metadata[einmal_effect_key]=another&metadata[order_id]=o-1")
			search := func(query string) (ids []string) {
				for i, err := range s.stripe.V1PaymentIntents.Search(t.Context(), &stripe.PaymentIntentSearchParams{SearchParams: stripe.SearchParams{Query: query, Limit: stripe.Int64(1)}}) {
					if err != nil {
						t.Fatal(err)
					}
					ids = append(ids, i.ID)
				}
				return ids
			}
			if got := search(`metadata['einmal_effect_key']:'key-of-o-1'`); got != nil {
				t.Errorf("before its lag: %v", got)
			}
			s.pass(time.Minute)
			for query, want := range map[string]int{
				`metadata['einmal_effect_key']:'key-of-o-1'`:                             1,
				`metadata["order_id"]:"o-1"`:                                             2,
				`metadata['order_id']:'o-1' AND metadata['einmal_effect_key']:'another'`: 1,
				`metadata['order_id']:'o-2'`:                                             0,
			} {
				got := search(query)
				if len(got) != want || want == 1 && query[10:16] == "einmal" && got[0] != id {
					t.Errorf("%s: %v, want %d", query, got, want)
				}
			}
		})

		t.Run("refunds are listed by their intent", func(t *testing.T) {
			s := openShop(t, kind)
			id, other := s.captured("k", 1250), s.captured("other", 1250)
			first, second := must(s.refund("r1", id, 1))(t), must(s.refund("r2", id, 2))(t)
			must(s.refund("r3", other, 3))(t)
			var got []string
			for r, err := range s.stripe.V1Refunds.List(t.Context(), &stripe.RefundListParams{PaymentIntent: stripe.String(id)}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r.ID+" "+r.Metadata["einmal_effect_key"])
			}
			if diff := cmp.Diff([]string{second.ID + " r2", first.ID + " r1"}, got); diff != "" {
				t.Error(diff)
			}
			found := must(s.stripe.V1Refunds.Retrieve(t.Context(), first.ID, nil))(t)
			if found.Amount != 1 || found.Metadata["einmal_effect_key"] != "r1" || found.PaymentIntent.ID != id {
				t.Errorf("retrieved %+v", found)
			}
		})

		t.Run("what there is not is not found", func(t *testing.T) {
			s := openShop(t, kind)
			_, err := s.stripe.V1PaymentIntents.Retrieve(t.Context(), "pi_none", nil)
			checkNo(t, err, http.StatusNotFound, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodeResourceMissing)
			_, err = s.stripe.V1Refunds.Retrieve(t.Context(), "re_none", nil)
			checkNo(t, err, http.StatusNotFound, stripe.ErrorTypeInvalidRequest, stripe.ErrorCodeResourceMissing)
			for _, query := range []string{"?limit=0", "?limit=101", "?limit=x", "?colour=red", "/search", "/search?query=status:'succeeded'", "/search?query="} {
				a := s.do(t.Context(), readToken, "GET", "/psp/v1/payment_intents"+query, "")
				if a.status != http.StatusBadRequest || a.pspError().Type != "invalid_request_error" {
					t.Errorf("%s: %v", query, a)
				}
			}
		})

		t.Run("none are offered without the ability", func(t *testing.T) {
			s := openShop(t, kind)
			id := must(s.create("k", "pm_card_visa"))(t).ID
			s.abilities(`{"target":"psp","keys":"honour","lookup":false,"close":true}`)
			_, err := s.stripe.V1PaymentIntents.Retrieve(t.Context(), id, nil)
			checkNo(t, err, http.StatusNotImplemented, stripe.ErrorTypeAPI, "")
			must(s.confirm("k-authorize", id))(t)
		})
	})
}
