package tickets

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/outbox"
)

// portal is what stands between us and the desk when somebody has to log in first.
const portal = `<html><body><form action="/login">Welcome to our network</form></body></html>`

// answers is a provider whose desk gives every call the same answer.
func answers(t *testing.T, status int, body string, headers ...string) provider {
	t.Helper()
	desk := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, header := range headers {
			name, value, _ := strings.Cut(header, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(desk.Close)
	return newProvider(Config{ProviderURL: desk.URL, ProviderTimeout: 10 * time.Second})
}

// What the desk says in its own words may be final. What anybody on the way could have said is not.
func TestWhatAnAnswerToASendShows(t *testing.T) {
	const made = `{"reference":"D-1"}`
	code := func(code string) string { return fmt.Sprintf(`{"code":%q,"detail":"d"}`, code) }
	for _, c := range []struct {
		status int
		body   string
		want   outbox.Finding
	}{
		{201, made, outbox.Confirmed},
		{201, `{}`, outbox.Ambiguous},
		{201, ``, outbox.Ambiguous},
		{201, portal, outbox.Ambiguous},
		{201, made + "x", outbox.Ambiguous},
		{201, `{"reference":"D-1","reference":"D-2"}`, outbox.Ambiguous},
		{201, `{"reference":7}`, outbox.Ambiguous},
		{201, `{"reference":"D-1","effect_key":"k"}`, outbox.Confirmed},
		{201, `{"reference":"D-1","effect_key":"another"}`, outbox.Ambiguous},
		{200, made, outbox.Ambiguous}, // a desk that creates says so
		{200, portal, outbox.Ambiguous},
		{202, made, outbox.Ambiguous},
		{204, ``, outbox.Ambiguous},
		{301, portal, outbox.Ambiguous},
		{302, ``, outbox.Ambiguous},
		{303, made, outbox.Ambiguous},
		{307, ``, outbox.Ambiguous},
		{308, ``, outbox.Ambiguous},

		{422, code("refused"), outbox.Verdict},
		{422, code("invalid"), outbox.Refused},
		{422, code("key_reused"), outbox.Reused},
		{400, code("key_reused"), outbox.Ambiguous},
		{409, code("key_reused"), outbox.Ambiguous},
		{422, code("key_reused") + "x", outbox.Ambiguous},
		{422, code("error"), outbox.Ambiguous},
		{422, portal, outbox.Ambiguous},
		{422, code("refused") + "x", outbox.Ambiguous},
		{400, code("invalid"), outbox.Refused},
		{400, code("refused"), outbox.Ambiguous},
		{400, code("error"), outbox.Ambiguous},
		{400, `<html>400 The plain HTTP request was sent to HTTPS port</html>`, outbox.Ambiguous},
		{400, ``, outbox.Ambiguous},
		{413, code("invalid"), outbox.Refused},
		{413, portal, outbox.Ambiguous},

		{401, code("unauthorized"), outbox.NotSent},
		{401, code("error"), outbox.Ambiguous},
		{401, code("unauthorized") + "x", outbox.Ambiguous},
		{401, portal, outbox.Ambiguous},
		{401, ``, outbox.Ambiguous},
		{403, code("unauthorized"), outbox.NotSent},
		{403, code("error"), outbox.Ambiguous},
		{403, portal, outbox.Ambiguous},
		{425, code("unauthorized"), outbox.Ambiguous}, // the desk has no such word
		{425, ``, outbox.Ambiguous},
		{429, code("error"), outbox.NotSent},
		{429, portal, outbox.Ambiguous},
		{409, code("closed"), outbox.NotSent},
		{409, code("in_progress"), outbox.Ambiguous},
		{409, portal, outbox.Ambiguous},

		{402, code("error"), outbox.Ambiguous},
		{404, code("not_found"), outbox.Ambiguous},
		{404, portal, outbox.Ambiguous},
		{405, ``, outbox.Ambiguous},
		{407, ``, outbox.Ambiguous},
		{408, ``, outbox.Ambiguous},
		{410, code("refused"), outbox.Ambiguous},
		{411, ``, outbox.Ambiguous},
		{415, ``, outbox.Ambiguous},
		{421, ``, outbox.Ambiguous},
		{426, ``, outbox.Ambiguous},
		{451, portal, outbox.Ambiguous},
		{499, ``, outbox.Ambiguous},
		{500, code("refused"), outbox.Ambiguous},
		{502, portal, outbox.Ambiguous},
		{503, ``, outbox.Ambiguous},
		{504, ``, outbox.Ambiguous},
		{599, made, outbox.Ambiguous},
	} {
		t.Run(fmt.Sprintf("%d %.30s: %s", c.status, c.body, c.want), func(t *testing.T) {
			ev := answers(t, c.status, c.body).Send(t.Context(), outbox.Effect{EffectKey: "k", Command: []byte(`{}`)})
			if ev.Finding != c.want || (ev.Reference != "") != (c.want == outbox.Confirmed) || ev.Says == "" || strings.Contains(ev.Says, "html") {
				t.Errorf("%+v", ev)
			}
		})
	}
	t.Run("a code that is none is not repeated to anybody", func(t *testing.T) {
		ev := answers(t, 500, code("Bearer s3cret")).Send(t.Context(), outbox.Effect{EffectKey: "k", Command: []byte(`{}`)})
		if ev.Says != "answered 500" {
			t.Errorf("%+v", ev)
		}
	})
	t.Run("every 4xx that nobody foresaw is no end", func(t *testing.T) {
		for status := 400; status < 500; status++ {
			ev := answers(t, status, `{}`).Send(t.Context(), outbox.Effect{EffectKey: "k", Command: []byte(`{}`)})
			if ev.Finding != outbox.Ambiguous {
				t.Errorf("%d: %+v", status, ev)
			}
		}
	})
}

func TestWhatAnAnswerToALookUpShows(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   outbox.Evidence
	}{
		{200, `{"items":[{"reference":"D-1"}]}`, outbox.Evidence{Finding: outbox.Confirmed, Reference: "D-1", More: []string{}}},
		{200, `{"items":[{"reference":"D-1"},{"reference":"D-2"}]}`, outbox.Evidence{Finding: outbox.Confirmed, Reference: "D-1", More: []string{"D-2"}}},
		{200, `{"items":[{"reference":"D-1","effect_key":"k"}]}`, outbox.Evidence{Finding: outbox.Confirmed, Reference: "D-1", More: []string{}}},
		{200, `{"items":[{"reference":"D-1","effect_key":"another"}]}`, outbox.Evidence{Finding: outbox.Ambiguous}}, // a desk that lists all it has
		{200, `{"items":[{"reference":"D-1","effect_key":"k"},{"reference":"D-2","effect_key":"another"}]}`, outbox.Evidence{Finding: outbox.Ambiguous}},
		{200, `{"items":[]}`, outbox.Evidence{Finding: outbox.NotFound}},
		{200, `{"items":null}`, outbox.Evidence{Finding: outbox.Ambiguous}},
		{200, `{"items":[{}]}`, outbox.Evidence{Finding: outbox.Ambiguous}},
		{200, `{"items":[]`, outbox.Evidence{Finding: outbox.Ambiguous}},
		{200, `{}`, outbox.Evidence{Finding: outbox.Ambiguous}},
		{200, `[]`, outbox.Evidence{Finding: outbox.Ambiguous}},
		{200, ``, outbox.Evidence{Finding: outbox.Ambiguous}},
		{200, portal, outbox.Evidence{Finding: outbox.Ambiguous}},
		{200, `{"items":[{"reference":"` + strings.Repeat("D", maxAnswer) + `"}]}`, outbox.Evidence{Finding: outbox.Ambiguous}},
		{204, ``, outbox.Evidence{Finding: outbox.Ambiguous}},
		{302, `{"items":[]}`, outbox.Evidence{Finding: outbox.Ambiguous}},
		{401, `{"items":[]}`, outbox.Evidence{Finding: outbox.Ambiguous}},
		{404, `{"items":[]}`, outbox.Evidence{Finding: outbox.Ambiguous}},
		{501, `{"code":"not_offered"}`, outbox.Evidence{Finding: outbox.Ambiguous}},
	} {
		t.Run(fmt.Sprintf("%d %.40s: %s", c.status, c.body, c.want.Finding), func(t *testing.T) {
			got := answers(t, c.status, c.body).Lookup(t.Context(), outbox.Effect{EffectKey: "k"})
			got.Says = ""
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An answer to a close that says nothing of what happened would end an effect as failed.
func TestWhatAnAnswerToACloseShows(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   outbox.Finding
	}{
		{200, `{"happened":false}`, outbox.Closed},
		{200, `{"happened":true,"reference":"D-1"}`, outbox.Confirmed},
		{200, `{"happened":false,"effect_key":"k"}`, outbox.Closed},
		{200, `{"happened":false,"effect_key":"another"}`, outbox.Ambiguous},
		{200, `{"happened":true,"reference":"D-1","effect_key":"another"}`, outbox.Ambiguous},
		{200, `{"happened":true}`, outbox.Ambiguous}, // it can't say what has
		{200, `{"happened":true,"reference":""}`, outbox.Ambiguous},
		{200, `{"happened":null}`, outbox.Ambiguous},
		{200, `{"happened":"false"}`, outbox.Ambiguous},
		{200, `{"happened":false`, outbox.Ambiguous},
		{200, `{}`, outbox.Ambiguous},
		{200, ``, outbox.Ambiguous},
		{200, portal, outbox.Ambiguous},
		{204, ``, outbox.Ambiguous},
		{302, `{"happened":false}`, outbox.Ambiguous},
		{404, `{"happened":false}`, outbox.Ambiguous},
		{501, `{"code":"not_offered"}`, outbox.Ambiguous},
	} {
		t.Run(fmt.Sprintf("%d %.40s: %s", c.status, c.body, c.want), func(t *testing.T) {
			if ev := answers(t, c.status, c.body).Close(t.Context(), outbox.Effect{EffectKey: "k", Fence: 2}); ev.Finding != c.want {
				t.Errorf("%+v", ev)
			}
		})
	}
}

func TestHowLongTheDeskAsksToBeLeftAlone(t *testing.T) {
	now := time.Now()
	for value, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-1": 0, "1.5": 0, "0": 0, "7": 7 * time.Second,
		"3600000000000000000": time.Hour, "99999999999999999999999": time.Hour,
		now.Add(time.Minute).UTC().Format(http.TimeFormat):   time.Minute,
		now.Add(-time.Minute).UTC().Format(http.TimeFormat):  0,
		now.AddDate(300, 0, 0).UTC().Format(http.TimeFormat): time.Hour,
	} {
		p := answers(t, http.StatusTooManyRequests, "", "Retry-After: "+value)
		got := p.Send(t.Context(), outbox.Effect{EffectKey: "k", Command: []byte(`{}`)}).RetryAfter
		if got > want || got < want-10*time.Second { // dates have whole seconds, and the test may be slow
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}

func TestEveryCallTellsHowLongTheDeskAsksToBeLeftAlone(t *testing.T) {
	p := answers(t, http.StatusTooManyRequests, "", "Retry-After: 7")
	e := outbox.Effect{EffectKey: "k", Command: []byte(`{}`)}
	for name, ev := range map[string]outbox.Evidence{"send": p.Send(t.Context(), e), "look-up": p.Lookup(t.Context(), e), "close": p.Close(t.Context(), e)} {
		if ev.RetryAfter != 7*time.Second {
			t.Errorf("%s: %+v", name, ev)
		}
	}
}
