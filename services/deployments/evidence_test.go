package deployments

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

// portal is what stands between us and the cluster when somebody has to log in first.
const portal = `<html><body><form action="/login">Welcome to our network</form></body></html>`

// answers is a cluster that gives every call the same answer.
func answers(t *testing.T, status int, body string, headers ...string) cluster {
	t.Helper()
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, header := range headers {
			name, value, _ := strings.Cut(header, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(there.Close)
	return newCluster(Config{ProviderURL: there.URL, ProviderTimeout: 10 * time.Second})
}

// Effects of a rollout and of the stop that breaks it off.
var (
	rolling  = outbox.Effect{EffectKey: "k", Token: 4, Command: []byte(`{"account":"acme","environment":"prod","service":"web","artifact":"app@1"}`)}
	stopping = outbox.Effect{EffectKey: "s", Token: 4, Command: []byte(`{"account":"acme","environment":"prod","rollout":"k"}`)}
)

// shows is the rollout as the cluster shows it, with more members or other ones.
func shows(state, more string) string {
	return `{"reference":"R-1","effect_key":"k","account":"acme","environment":"prod","service":"web","artifact":"app@1","floor":5,"state":"` + state + `"` + more + `}`
}

// inAnother is a rollout under our key that is not ours.
func inAnother(member, is, was string) string {
	return strings.Replace(shows("succeeded", `,"runs":"app@1"`), `"`+member+`":"`+was+`"`, `"`+member+`":"`+is+`"`, 1)
}

func code(code string) string { return fmt.Sprintf(`{"code":%q,"detail":"d"}`, code) }

// What the cluster says in its own words may be final. What anybody on the way could have said is not.
func TestWhatAnAnswerToASendShows(t *testing.T) {
	type answer struct {
		status int
		body   string
		want   outbox.Finding
	}
	every := []answer{ // of a rollout and of a stop
		{422, code("key_reused"), outbox.Reused},
		{400, code("key_reused"), outbox.Ambiguous},
		{409, code("key_reused"), outbox.Ambiguous},
		{422, code("key_reused") + "x", outbox.Ambiguous},
		{422, code("invalid"), outbox.Refused},
		{422, code("error"), outbox.Ambiguous},
		{422, portal, outbox.Ambiguous},
		{422, code("refused") + "x", outbox.Ambiguous},
		{400, code("invalid"), outbox.Refused},
		{400, code("refused"), outbox.Ambiguous},
		{400, portal, outbox.Ambiguous},
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
		{425, code("unauthorized"), outbox.Ambiguous}, // the cluster has no such word
		{429, code("error"), outbox.NotSent},
		{429, portal, outbox.Ambiguous},
		{409, code("in_progress"), outbox.Ambiguous},
		{409, portal, outbox.Ambiguous},

		{200, portal, outbox.Ambiguous},
		{202, portal, outbox.Ambiguous},
		{202, `{}`, outbox.Ambiguous},
		{204, ``, outbox.Ambiguous},
		{301, portal, outbox.Ambiguous},
		{307, ``, outbox.Ambiguous},
		{404, code("not_found"), outbox.Ambiguous},
		{404, portal, outbox.Ambiguous},
		{405, ``, outbox.Ambiguous},
		{408, ``, outbox.Ambiguous},
		{410, code("refused"), outbox.Ambiguous},
		{500, code("refused"), outbox.Ambiguous},
		{502, portal, outbox.Ambiguous},
		{503, ``, outbox.Ambiguous},
	}
	hold := func(t *testing.T, what string, all []answer, send func(cluster) outbox.Evidence) {
		t.Helper()
		for _, a := range all {
			t.Run(fmt.Sprintf("%s: %d %.60s: %s", what, a.status, a.body, a.want), func(t *testing.T) {
				if ev := send(answers(t, a.status, a.body)); ev.Finding != a.want || ev.Says == "" || strings.Contains(ev.Says, "html") {
					t.Errorf("%+v", ev)
				}
			})
		}
		t.Run(what+": a code that is none is not repeated to anybody", func(t *testing.T) {
			if ev := send(answers(t, 500, code("Bearer s3cret"))); ev.Says != "answered 500" {
				t.Errorf("%+v", ev)
			}
		})
	}
	rollOut := func(c cluster) outbox.Evidence { return rollouts{c}.Send(t.Context(), rolling) }
	hold(t, "rollout", every, rollOut)
	hold(t, "rollout", []answer{
		{202, shows("running", ""), outbox.Accepted},
		{200, shows("running", ""), outbox.Ambiguous}, // a cluster that begins says so
		{201, shows("running", ""), outbox.Ambiguous},
		{202, shows("running", "") + "x", outbox.Ambiguous},
		{202, `{"effect_key":"k","artifact":"app@1","state":"running"}`, outbox.Ambiguous},
		{202, inAnother("effect_key", "another", "k"), outbox.Ambiguous},
		{202, shows("succeeded", `,"runs":"app@1"`), outbox.Confirmed},
		{202, shows("succeeded", `,"runs":"app@2"`), outbox.Different},
		{422, code("refused"), outbox.Verdict},
		{409, `{"code":"below_floor","floor":9}`, outbox.NotSent},
		{409, `{"code":"below_floor","floor":9}x`, outbox.Ambiguous},
		{409, `{"code":"busy","rollout":{"reference":"R-9","effect_key":"another","state":"running"}}`, outbox.NotSent},
		{409, `{"code":"busy","rollout":` + shows("running", "") + `}`, outbox.Accepted}, // the cluster ignores keys
		{409, `{"code":"busy","rollout":` + inAnother("service", "api", "web") + `}`, outbox.Different},
	}, rollOut)

	stop := func(c cluster) outbox.Evidence { return stops{c}.Send(t.Context(), stopping) }
	hold(t, "stop", every, stop)
	hold(t, "stop", []answer{
		{200, `{"reference":"S-1","state":"stopped","floor":5,"rollout":` + shows("stopped", "") + `}`, outbox.Confirmed},
		{200, `{"reference":"S-1","state":"never_started","floor":5}`, outbox.Confirmed},
		{200, `{"reference":"S-1","state":"succeeded","floor":5,"rollout":` + shows("succeeded", "") + `}`, outbox.Verdict},
		{200, `{"reference":"S-1","state":"failed","floor":5,"rollout":` + shows("failed", "") + `}`, outbox.Verdict},
		{200, `{"reference":"S-1","state":"partial","floor":5,"rollout":` + shows("partial", "") + `}`, outbox.Different},
		{200, `{"reference":"S-1","state":"stopped","rollout":` + inAnother("effect_key", "another", "k") + `}`, outbox.Ambiguous},
		{200, `{"state":"stopped"}`, outbox.Ambiguous},
		{200, `{"reference":"S-1"}`, outbox.Ambiguous},
		{201, `{"reference":"S-1","state":"stopped"}`, outbox.Ambiguous},
		{422, code("refused"), outbox.Refused},
		{409, `{"code":"busy"}`, outbox.Ambiguous},
	}, stop)
}

func TestWhatAnAnswerToALookUpShows(t *testing.T) {
	items := func(all ...string) string { return `{"items":[` + strings.Join(all, ",") + `]}` }
	for _, c := range []struct {
		status        int
		body          string
		rollout, stop outbox.Finding
	}{
		{200, items(), outbox.NotFound, outbox.NotFound},
		{200, items(shows("running", "")), outbox.Accepted, outbox.NotFound},
		{200, items(shows("succeeded", `,"runs":"app@1"`)), outbox.Confirmed, outbox.Verdict},
		{200, items(shows("succeeded", `,"runs":"app@2"`)), outbox.Different, outbox.Verdict},
		{200, items(shows("failed", "")), outbox.Verdict, outbox.Verdict},
		{200, items(shows("stopped", "")), outbox.Stopped, outbox.Confirmed},
		{200, items(shows("partial", `,"runs":"mixed"`)), outbox.Different, outbox.Different},
		{200, items(shows("a word of a newer cluster", "")), outbox.Different, outbox.Different},
		{200, items(shows("failed", ""), shows("running", "")), outbox.Accepted, outbox.NotFound}, // the last
		{200, items(inAnother("artifact", "app@9", "app@1")), outbox.Different, outbox.Verdict},
		{200, items(inAnother("service", "api", "web")), outbox.Different, outbox.Verdict},
		{200, items(inAnother("environment", "staging", "prod")), outbox.Different, outbox.Verdict},
		{200, items(inAnother("effect_key", "another", "k")), outbox.Ambiguous, outbox.Ambiguous},
		{200, items(inAnother("effect_key", "another", "k"), shows("running", "")), outbox.Ambiguous, outbox.Ambiguous}, // it lists all it has
		{200, items(`{}`), outbox.Ambiguous, outbox.Ambiguous},
		{200, `{"items":null}`, outbox.Ambiguous, outbox.Ambiguous},
		{200, `{"items":[]`, outbox.Ambiguous, outbox.Ambiguous},
		{200, `{}`, outbox.Ambiguous, outbox.Ambiguous},
		{200, ``, outbox.Ambiguous, outbox.Ambiguous},
		{200, portal, outbox.Ambiguous, outbox.Ambiguous},
		{204, ``, outbox.Ambiguous, outbox.Ambiguous},
		{302, items(), outbox.Ambiguous, outbox.Ambiguous},
		{401, items(), outbox.Ambiguous, outbox.Ambiguous},
		{404, items(), outbox.Ambiguous, outbox.Ambiguous},
		{501, code("not_offered"), outbox.Ambiguous, outbox.Ambiguous},
	} {
		t.Run(fmt.Sprintf("%d %.120s: %s, %s", c.status, c.body, c.rollout, c.stop), func(t *testing.T) {
			there := answers(t, c.status, c.body)
			if ev := (rollouts{there}).Lookup(t.Context(), rolling); ev.Finding != c.rollout {
				t.Errorf("rollout: %+v", ev)
			}
			if ev := (stops{there}).Lookup(t.Context(), stopping); ev.Finding != c.stop {
				t.Errorf("stop: %+v", ev)
			}
		})
	}
	t.Run("a second rollout under one key is told", func(t *testing.T) {
		second := strings.Replace(shows("running", ""), "R-1", "R-2", 1)
		got := rollouts{answers(t, 200, items(shows("failed", ""), second))}.Lookup(t.Context(), rolling)
		want := outbox.Evidence{Finding: outbox.Accepted, Reference: "R-2", More: []string{"R-1"}, Says: "the rollout is running", Floor: 5}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("what runs in another environment is not told of this one", func(t *testing.T) {
		ev := rollouts{answers(t, 200, items(inAnother("environment", "staging", "prod")))}.Lookup(t.Context(), rolling)
		if ev.Runs != "" || ev.Floor != 0 {
			t.Errorf("%+v", ev)
		}
	})
}

// A close that is taken for conclusive and is none would set an environment free in which a rollout begins later.
func TestWhatAnAnswerToACloseShows(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   outbox.Finding
		floor  int64
	}{
		{200, `{"effect_key":"k","floor":5}`, outbox.Closed, 5},
		{200, `{"effect_key":"k","floor":9}`, outbox.Closed, 9},
		{200, `{"effect_key":"k","floor":4}`, outbox.Ambiguous, 0}, // the token is not below it
		{200, `{"effect_key":"k"}`, outbox.Ambiguous, 0},
		{200, `{"floor":5}`, outbox.Ambiguous, 0},
		{200, `{"effect_key":"another","floor":5}`, outbox.Ambiguous, 0},
		{200, `{"effect_key":"k","floor":5}x`, outbox.Ambiguous, 0},
		{200, `{"effect_key":"k","floor":6,"rollout":` + shows("running", "") + `}`, outbox.Accepted, 6},
		{200, `{"effect_key":"k","floor":6,"rollout":` + shows("succeeded", `,"runs":"app@1"`) + `}`, outbox.Confirmed, 6},
		{200, `{"effect_key":"k","floor":6,"rollout":` + inAnother("artifact", "app@9", "app@1") + `}`, outbox.Different, 6},
		{200, `{"effect_key":"k","floor":6,"rollout":` + inAnother("effect_key", "another", "k") + `}`, outbox.Ambiguous, 0},
		{200, `{"effect_key":"k","floor":6,"rollout":{}}`, outbox.Ambiguous, 0},
		{200, portal, outbox.Ambiguous, 0},
		{200, ``, outbox.Ambiguous, 0},
		{204, ``, outbox.Ambiguous, 0},
		{302, `{"effect_key":"k","floor":5}`, outbox.Ambiguous, 0},
		{404, `{"effect_key":"k","floor":5}`, outbox.Ambiguous, 0},
		{501, code("not_offered"), outbox.Ambiguous, 0},
	} {
		t.Run(fmt.Sprintf("%d %.120s: %s", c.status, c.body, c.want), func(t *testing.T) {
			if ev := (rollouts{answers(t, c.status, c.body)}).Close(t.Context(), rolling); ev.Finding != c.want || ev.Floor != c.floor {
				t.Errorf("%+v", ev)
			}
		})
	}
}

func TestEveryCallTellsHowLongTheClusterAsksToBeLeftAlone(t *testing.T) {
	there := answers(t, http.StatusTooManyRequests, "", "Retry-After: 7")
	for name, ev := range map[string]outbox.Evidence{
		"rollout": rollouts{there}.Send(t.Context(), rolling), "look-up": rollouts{there}.Lookup(t.Context(), rolling),
		"close": rollouts{there}.Close(t.Context(), rolling), "stop": stops{there}.Send(t.Context(), stopping),
		"look-up of what was stopped": stops{there}.Lookup(t.Context(), stopping),
	} {
		if ev.RetryAfter != 7*time.Second {
			t.Errorf("%s: %+v", name, ev)
		}
	}
}
