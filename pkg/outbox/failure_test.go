package outbox_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/einmal/einmal/pkg/outbox"
)

func TestAHandshakeThatFails(t *testing.T) {
	target := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }))
	defer target.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(request) // which knows nothing of this authority
	if err == nil {
		res.Body.Close()
		t.Fatal("the certificate is valid")
	}
	if ev := outbox.FailedSend(err); ev.Finding != outbox.NotSent {
		t.Errorf("%+v", ev)
	}
	if ev := outbox.FailedAsk(err); ev.Finding != outbox.Ambiguous {
		t.Errorf("%+v", ev)
	}
}
