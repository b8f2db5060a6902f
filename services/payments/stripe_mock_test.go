package payments_test

import (
	"bytes"
	"go/build"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/services/payments"
)

// Our simulator takes what we think is Stripe's. stripe-mock is Stripe's own, made from the description of its interface: whatever our
// adapter sends must be a request there as well. It keeps nothing, so what it answers says nothing about what happens.
func TestStripeTakesOurRequests(t *testing.T) {
	mock := startStripeMock(t)
	provider := startPSP(t, database.SQLite)
	simulated, err := url.Parse(provider.URL)
	if err != nil {
		t.Fatal(err)
	}
	passOn := httputil.NewSingleHostReverseProxy(simulated)
	passOn.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) } // an answer that is lost is lost here, too
	recorded := &recorder{to: passOn}
	proxy := httptest.NewServer(recorded)
	t.Cleanup(proxy.Close)
	r := startWith(t, database.SQLite, provider, func(c *payments.Config) { c.ProviderURL = proxy.URL })

	r.cancel("cancel", r.authorized("canceled").ID, wait)
	captured := r.captured("captured")
	provider.arm("refund", "after", "lose") // is looked for by our key
	r.ends(r.accepted(r.refund("refund", captured.ID, "1")).ID, "succeeded")

	// A payment whose reference is forgotten is looked for by our key, too.
	provider.arm("retrieve", "before", "status", `"status":503`, `"times":1000`)
	provider.arm("confirm", "after", "lose")
	r.put("forgotten")
	forgotten := r.accepted(r.pay("forgotten", "forgotten"))
	r.becomes(forgotten.ID, "unknown, and asked about in vain", func(op operation) bool {
		return op.State == "unknown" && provider.calls("retrieve") > 0
	})
	err = r.db.Read(t.Context()).Exec("UPDATE effects SET reference = '' WHERE operation_id = ?", forgotten.ID).Error
	if err != nil {
		t.Fatal(err)
	}
	r.ends(forgotten.ID, "succeeded")

	var kinds []string
	for _, request := range recorded.all() {
		answer, err := http.DefaultClient.Do(request.at(t, mock))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body) // for the message
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: stripe-mock answers %d %s", request, answer.StatusCode, body)
		}
		kinds = append(kinds, request.kind())
	}
	slices.Sort(kinds)
	want := []string{
		"GET payment_intents", "GET payment_intents/ID", "GET refunds", "POST payment_intents", "POST payment_intents/ID/cancel",
		"POST payment_intents/ID/capture", "POST payment_intents/ID/confirm", "POST refunds",
	}
	if diff := cmp.Diff(want, slices.Compact(kinds)); diff != "" {
		t.Errorf("kinds of requests (-want +got)\n%s", diff)
	}
}

// sent is a request as the adapter sent it.
type sent struct{ method, path, query, contentType, body string }

func (s sent) String() string { return s.method + " " + s.path + "?" + s.query + " " + s.body }

// kind is what is asked, whatever it is about.
func (s sent) kind() string {
	parts := strings.Split(strings.TrimPrefix(s.path, "/psp/v1/"), "/")
	if len(parts) > 1 {
		parts[1] = "ID"
	}
	return s.method + " " + strings.Join(parts, "/")
}

// at is the same request to Stripe's own paths.
func (s sent) at(t *testing.T, base string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), s.method, base+strings.TrimPrefix(s.path, "/psp")+"?"+s.query, strings.NewReader(s.body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer sk_test_123") // what stripe-mock takes for a key
	request.Header.Set("Content-Type", s.contentType)
	return request
}

// recorder passes requests on and remembers them.
type recorder struct {
	to   http.Handler
	mu   sync.Mutex
	seen []sent
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.mu.Lock()
	r.seen = append(r.seen, sent{request.Method, request.URL.Path, request.URL.RawQuery, request.Header.Get("Content-Type"), string(body)})
	r.mu.Unlock()
	request.Body = io.NopCloser(bytes.NewReader(body))
	r.to.ServeHTTP(w, request)
}

func (r *recorder) all() []sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// startStripeMock runs stripe-mock until the test ends. .ci/tools fetches it.
func startStripeMock(t *testing.T) (base string) {
	t.Helper()
	binary, err := exec.LookPath("stripe-mock")
	if err != nil {
		binary = filepath.Join(build.Default.GOPATH, "bin", "stripe-mock")
		_, err = os.Stat(binary)
	}
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("NOT TESTED: stripe-mock is not installed; .ci/tools does it")
	}
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	mock := exec.Command(binary, "-http-addr", address)
	if err := mock.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = mock.Process.Kill() // it may have ended by itself
		_ = mock.Wait()
	})
	deadline, tick := time.After(patience), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		if answer, err := http.Get("http://" + address); err == nil {
			answer.Body.Close()
			return "http://" + address
		}
		select {
		case <-deadline:
			t.Fatal("stripe-mock does not answer")
		case <-tick.C:
		}
	}
}
