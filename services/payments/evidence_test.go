package payments_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/services/payments"
)

// between stands between a service and its provider, and answers in its place what a proxy, a gateway or a page to log in would.
type between struct {
	forward http.Handler
	path    atomic.Value // which requests are answered so: "POST confirm"
	left    atomic.Int64 // how many more
	lets    atomic.Bool  // whether it has let them through before
	status  atomic.Int64
	body    atomic.Value
}

func (b *between) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method, end, _ := strings.Cut(b.path.Load().(string), " ")
	if r.Method != method || !strings.HasSuffix(r.URL.Path, end) || b.left.Add(-1) < 0 {
		b.forward.ServeHTTP(w, r)
		return
	}
	if b.lets.Load() {
		b.forward.ServeHTTP(httptest.NewRecorder(), r)
	}
	body := b.body.Load().(string)
	if strings.HasPrefix(body, "{") {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(int(b.status.Load()))
	fmt.Fprint(w, body)
}

// next answers the next requests.
func (b *between) next(times int64, path string, status int, body string) {
	b.path.Store(path)
	b.status.Store(int64(status))
	b.body.Store(body)
	b.left.Store(times)
}

// startBetween is a service whose provider is behind something that can answer for it.
func startBetween(t *testing.T) (running, *between) {
	t.Helper()
	provider := startPSP(t, database.SQLite)
	simulated, err := url.Parse(provider.URL)
	if err != nil {
		t.Fatal(err)
	}
	b := &between{forward: httputil.NewSingleHostReverseProxy(simulated)}
	b.path.Store("")
	proxy := httptest.NewServer(b)
	t.Cleanup(proxy.Close)
	return startWith(t, database.SQLite, provider, func(c *payments.Config) { c.ProviderURL = proxy.URL }), b
}

// What ends an effect, or makes certain that there was none, is believed only in the provider's own words.
func TestOnlyTheProviderIsBelieved(t *testing.T) {
	s, b := startBetween(t)
	const page = "<html><body>Sign in to continue</body></html>"
	for i, c := range []struct {
		status int
		body   string
		want   string
	}{
		{200, page, "ambiguous"},
		{200, ``, "ambiguous"},
		{200, `{}`, "ambiguous"},
		{200, `{"id":"pi_other","object":"payment_intent","status":"requires_capture","amount":1250,"currency":"eur"}`, "ambiguous"},
		{200, `{"object":"payment_intent","status":"succeeded","amount":1250,"amount_received":1000}`, "ambiguous"},
		{204, ``, "ambiguous"},
		{302, page, "ambiguous"},
		{400, page, "ambiguous"},
		{400, `{"message":"Bad Request"}`, "ambiguous"},
		{402, page, "ambiguous"},
		{402, `{"error":{"type":"api_error","message":"Payment Required"}}`, "ambiguous"},
		{404, page, "ambiguous"},
		{405, page, "ambiguous"},
		{401, page, "ambiguous"},
		{403, page, "ambiguous"},
		{429, page, "ambiguous"},
		{429, `{"message":"Too many requests"}`, "ambiguous"},
		{401, `{"error":{"type":"invalid_request_error","message":"Invalid API Key provided"}}`, "not_sent"},
		{403, `{"error":{"type":"invalid_request_error","message":"The provided key does not have access"}}`, "not_sent"},
		{429, `{"error":{"type":"invalid_request_error","code":"rate_limit","message":"Too many requests"}}`, "not_sent"},
		{401, `{"error":{"type":"api_error","message":"Unauthorized"}}`, "ambiguous"},
		{401, `{"error":{"type":"invalid_request_error","message":"Invalid API Key provided."}}`, "not_sent"},
		{403, `{"error":{"type":"api_error","message":"Forbidden"}}`, "ambiguous"},
		{403, `{"error":{"type":"invalid_request_error","message":"The provided key does not have the required permissions."}}`, "not_sent"},
		{425, page, "ambiguous"},
		{425, `{"error":{"type":"api_error","message":"Too Early"}}`, "ambiguous"},
		{503, page, "ambiguous"},
	} {
		for j, v := range verbs {
			t.Run(fmt.Sprintf("%s: %d %.40s", v.call, c.status, c.body), func(t *testing.T) {
				s := s.at(t)
				send := v.prepare(s, fmt.Sprintf("o-%d-%d", i, j))
				path := "POST /" + v.call
				if v.call == "refund" {
					path = "POST /refunds"
				}
				before := len(s.psp.ledger())
				b.next(1, path, c.status, c.body)
				op := s.accepted(send())
				op = s.ends(op.ID, "succeeded")
				if op.Attempts[0].Outcome != c.want || b.left.Load() >= 1 {
					t.Errorf("%+v", op.Attempts)
				}
				if made := s.psp.ledger()[before:]; len(made) != 1 {
					t.Errorf("%+v", made)
				}
			})
		}
	}
	s.healthy()
}

// A gateway that looks at answers can say no to one that tells of money that has moved. A payment that is withdrawn then is closed first.
func TestANoThatIsNotTheProviders(t *testing.T) {
	for _, status := range []int{401, 403, 425, 429} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s, b := startBetween(t)
			s.put("o")
			b.lets.Store(true)
			b.next(1000, "POST /confirm", status, "<html>Blocked</html>")
			op := s.accepted(s.pay("k", "o"))
			s.becomes(op.ID, "is answered", func(op operation) bool { return len(op.Attempts) > 0 && op.Attempts[0].Outcome != "" })
			if a := s.agent().Send(t, "POST", "/v1/operations/"+op.ID+"/cancel", `{}`, key("x")); a.Status == 200 {
				t.Errorf("what has happened is withdrawn: %s", a)
			}
			s.ends(op.ID, "succeeded")
			expect(t, "the order is not free", s.pay("k2", "o"), 409, problem.OrderBusy)
			s.psp.has("authorize 1250 EUR")
			s.healthy()
		})
	}
}

// An answer that is about another payment or refund is none, as from a proxy that mixes answers up: what somebody else wants to be paid
// is not confirmed, and nothing is taken for done.
func TestAnswersAboutAnother(t *testing.T) {
	s, b := startBetween(t)
	first, other := s.captured("first"), s.authorized("other")
	s.psp.does("payment_intents", "amount=1250&currency=eur&capture_method=manual&payment_method=pm_card_visa&metadata[order_id]=strange")
	all := s.psp.intents()
	strange := all[len(all)-1]
	if strange.Status != "requires_confirmation" {
		t.Fatalf("%+v", all)
	}
	before := len(s.psp.ledger())
	for i, id := range []string{other.Reference, strange.ID} {
		order := fmt.Sprintf("o-%d", i)
		s.put(order)
		b.next(1, "POST /payment_intents", 200, `{"id":"`+id+`","object":"payment_intent","status":"requires_confirmation","amount":1250,"currency":"eur"}`)
		if p := s.done(s.pay("pay-"+order, order, wait), "authorized"); p.Reference == id || b.left.Load() > 0 {
			t.Errorf("%+v is known as another: %s", p, id)
		}
	}
	for i, body := range []string{
		`{"id":"re_other","object":"refund","status":"succeeded","amount":100,"currency":"eur","metadata":{"einmal_effect_key":"another"}}`,
		`{"id":"` + other.Reference + `","object":"payment_intent","status":"succeeded","amount":100,"currency":"eur"}`,
		`{"id":"re_other","object":"refund","status":"failed","amount":100,"currency":"eur"}`,
	} {
		b.next(1, "POST /refunds", 200, body)
		k := fmt.Sprintf("refund-%d", i)
		if op := s.accepted(s.refund(k, first.ID, "1")); op.ApprovalID != "" { // all but the first
			s.decide("yes-"+k, op, "approve")
		}
		a := s.refund(k, first.ID, "1", wait)
		if r := of[refund](t, a); r.State != "succeeded" || r.Reference == "re_other" || r.Reference == other.Reference || b.left.Load() > 0 {
			t.Errorf("%s", a)
		}
	}
	if made := s.psp.ledger()[before:]; len(made) != 5 {
		t.Errorf("%+v", made)
	}
	for _, i := range s.psp.intents() {
		if i.ID == strange.ID && i.Status != "requires_confirmation" {
			t.Errorf("what is not ours was confirmed: %+v", i)
		}
	}
	s.healthy()
}

// What a look-up shows beside the first effect under our key is told to a person, also while it is under way, and counts more than what
// has come to nothing.
func TestMoreThanOneUnderAKey(t *testing.T) {
	refund := func(id, status string) string {
		return `{"id":"` + id + `","object":"refund","status":"` + status + `","amount":100,"currency":"eur","metadata":{"einmal_effect_key":%[1]q}}`
	}
	for i, c := range []struct {
		name, list  string
		state, kind string
	}{
		{"both done", refund("re_2", "succeeded") + "," + refund("re_1", "succeeded"), "succeeded", "contradiction"},
		{"one under way beside one that is done", refund("re_2", "pending") + "," + refund("re_1", "succeeded"), "succeeded", "contradiction"},
		{"one done beside one under way", refund("re_2", "succeeded") + "," + refund("re_1", "pending"), "succeeded", "contradiction"},
		{"one under way beside one that failed", refund("re_2", "pending") + "," + refund("re_1", "failed"), "running", ""},
		{"one that failed beside one under way", refund("re_2", "failed") + "," + refund("re_1", "pending"), "running", ""},
		{"one done beside one that failed", refund("re_2", "failed") + "," + refund("re_1", "succeeded"), "succeeded", ""},
		{"both failed", refund("re_2", "failed") + "," + refund("re_1", "failed"), "failed", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, b := startBetween(t)
			p := s.captured("o")
			s.psp.arm("refund", "before", "lose")
			b.next(1000, "GET /refunds", 503, "")
			op := s.accepted(s.refund(fmt.Sprintf("refund-%d", i), p.ID, "1"))
			op = s.becomes(op.ID, "is unknown", func(op operation) bool { return op.State == "unknown" })
			b.next(1, "GET /refunds", 200, fmt.Sprintf(`{"object":"list","data":[`+c.list+`],"has_more":false}`, op.EffectKey))
			s.becomes(op.ID, "is "+c.state, func(op operation) bool { return op.State == c.state })
			kind := ""
			for _, r := range s.reviews() {
				if r.Kind == "contradiction" {
					kind = r.Kind
				}
			}
			if kind != c.kind {
				t.Errorf("%+v", s.reviews())
			}
		})
	}
}

// A list that isn't there is not an empty one: nothing is sent again because of it, which would be a second refund where keys are
// ignored.
func TestWhatIsNoLookUp(t *testing.T) {
	s, b := startBetween(t)
	s.psp.treatsKeys("ignore")
	for i, body := range []string{`{}`, `{"object":"list"`, `null`, `[]`, ``, `<html>`, `{"data":[]}`, `{"object":"error","data":[]}`} {
		for j, v := range verbs {
			t.Run(v.call+": "+body, func(t *testing.T) {
				s := s.at(t)
				send := v.prepare(s, fmt.Sprintf("o-%d-%d", i, j))
				before, calls := len(s.psp.ledger()), s.psp.calls(v.call)
				s.psp.arm(v.call, "after", "lose")
				path := "GET "
				if v.call == "refund" {
					path = "GET /refunds"
				}
				b.next(2, path, 200, body)
				s.ends(s.accepted(send()).ID, "succeeded")
				if made := s.psp.ledger()[before:]; len(made) != 1 || b.left.Load() > 0 || s.psp.calls(v.call) != calls+1 {
					t.Errorf("%d looks left, %d sends, %+v", b.left.Load(), s.psp.calls(v.call)-calls, made)
				}
			})
		}
	}
	s.healthy()
}
