package tickets

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/outbox"
)

// A desk that knows the effect key with another body has taken an earlier send: that is no refusal of the effect.
func TestAKeyThatTheDeskKnowsIsNoRefusal(t *testing.T) {
	desk := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"code":"key_reused"}`)
	}))
	defer desk.Close()
	p := newProvider(Config{ProviderURL: desk.URL, ProviderTimeout: 10 * time.Second})
	if ev := p.Send(t.Context(), outbox.Effect{EffectKey: "k", Command: []byte(`{}`)}); ev.Finding != outbox.Ambiguous {
		t.Errorf("%+v, want it ambiguous", ev)
	}
}
