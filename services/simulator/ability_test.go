package simulator_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/simulator"
)

// found are the references that a look-up shows.
func (w *world) found(key string) []string {
	w.t.Helper()
	a := w.lookUp(key)
	var list struct {
		Items []struct {
			Reference string `json:"reference"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.status != 200 || list.Items == nil {
		w.t.Fatalf("look-up: %v", a)
	}
	references := []string{}
	for _, item := range list.Items {
		references = append(references, item.Reference)
	}
	return references
}

func TestKeys(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("are forgotten after the key window", func(t *testing.T) {
			w := start(t, kind)
			w.abilities(`{"target":"desk","keys":"honour","key_window_ms":60000,"lookup":true,"close":false}`)
			first := w.send("k")
			w.pass(59 * time.Second)
			if a := w.send("k"); !a.replayed() {
				t.Errorf("within the window: %v", a)
			}
			w.checkEffects(1)
			w.pass(2 * time.Second)
			second := w.sendBody("k", `{"title":"another body"}`)
			if second.status != 201 || second.replayed() || second.member("reference") == first.member("reference") {
				t.Errorf("after the window: %v", second)
			}
			w.checkEffects(2)
			w.pass(59 * time.Second)
			if a := w.sendBody("k", `{"title":"another body"}`); a.member("reference") != second.member("reference") {
				t.Errorf("within the window of the second: %v", a)
			}
		})

		t.Run("are ignored if so told: every send is an effect", func(t *testing.T) {
			w := start(t, kind)
			w.abilities(`{"target":"desk","keys":"ignore","lookup":true,"close":true}`)
			first, second := w.send("k"), w.send("k")
			if second.status != 201 || second.replayed() || second.member("reference") == first.member("reference") {
				t.Errorf("first %v, second %v", first, second)
			}
			w.checkEffects(2)
			if diff := cmp.Diff([]string{first.member("reference"), second.member("reference")}, w.found("k")); diff != "" {
				t.Error(diff)
			}
			if a := w.close("k"); a.member("happened") != "true" || a.member("reference") != first.member("reference") {
				t.Errorf("close: %v", a)
			}
			check(t, w.send("k"), 409, "closed")
			w.checkEffects(2)
		})
	})
}

func TestLookup(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("shows an effect from lag after it, when close and the key know it at once", func(t *testing.T) {
			w := start(t, kind)
			w.abilities(`{"target":"desk","keys":"honour","lookup":true,"lag_ms":60000,"close":true}`)
			first := w.send("k")
			if got := w.found("k"); len(got) != 0 {
				t.Errorf("at once: %v", got)
			}
			if a := w.send("k"); !a.replayed() {
				t.Errorf("the second send: %v", a)
			}
			if a := w.close("k"); a.member("happened") != "true" {
				t.Errorf("close: %v", a)
			}
			w.pass(59 * time.Second)
			if got := w.found("k"); len(got) != 0 {
				t.Errorf("too early: %v", got)
			}
			w.pass(2 * time.Second)
			if diff := cmp.Diff([]string{first.member("reference")}, w.found("k")); diff != "" {
				t.Error(diff)
			}
			if got := w.found("unknown"); len(got) != 0 {
				t.Errorf("an unknown key: %v", got)
			}
		})

		t.Run("is not offered if so told", func(t *testing.T) {
			w := start(t, kind)
			w.abilities(`{"target":"desk","keys":"honour","lookup":false,"close":true}`)
			w.send("k")
			check(t, w.lookUp("k"), 501, "not_offered")
			if a := w.close("k"); a.member("happened") != "true" {
				t.Errorf("close: %v", a)
			}
		})
	})
}

func TestClose(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		t.Run("makes every later send impossible, and says what happened, again and again", func(t *testing.T) {
			for _, keys := range []string{"honour", "ignore"} {
				w := start(t, kind)
				w.abilities(`{"target":"desk","keys":"` + keys + `","lookup":true,"close":true}`)
				first := w.close("k")
				if first.status != 200 || first.member("happened") != "false" || first.member("effect_key") != "k" || first.member("reference") != "" {
					t.Errorf("close: %v", first)
				}
				check(t, w.send("k"), 409, "closed")
				check(t, w.sendBody("k", `{"title":"t","project":"refused"}`), 409, "closed")
				if again := w.close("k"); again.body != first.body {
					t.Errorf("closed again: %v", again)
				}
				w.checkEffects(0)

				// What is closed stays closed when the ability goes.
				w.abilities(`{"target":"desk","keys":"` + keys + `","lookup":true,"close":false}`)
				check(t, w.close("k"), 501, "not_offered")
				check(t, w.send("k"), 409, "closed")
				check(t, w.send("not-closed"), 201, "")
			}
		})

		t.Run("leaves the answers of the past", func(t *testing.T) {
			w := start(t, kind)
			sent, refused := w.send("k"), w.sendBody("no", `{"title":"t","project":"refused"}`)
			if a := w.close("k"); a.member("happened") != "true" || a.member("reference") != sent.member("reference") {
				t.Errorf("close: %v", a)
			}
			if a := w.close("no"); a.member("happened") != "false" {
				t.Errorf("close of a refused key: %v", a)
			}
			if a := w.send("k"); a.body != sent.body || !a.replayed() {
				t.Errorf("the key again: %v", a)
			}
			if a := w.sendBody("no", `{"title":"t","project":"refused"}`); a.body != refused.body {
				t.Errorf("the refused key again: %v", a)
			}
			w.pass(25 * time.Hour)
			check(t, w.send("k"), 409, "closed")
			w.checkEffects(1)
		})
	})
}

func TestAbilitiesAreListed(t *testing.T) {
	w := start(t, database.SQLite)
	everything := simulator.Abilities{Target: "desk", Keys: "honour", KeyWindowMS: 86_400_000, Lookup: true, Close: true}
	psp, cluster := everything, everything
	psp.Target, cluster.Target = "psp", "cluster"
	if diff := cmp.Diff([]simulator.Abilities{everything, psp, cluster}, read[simulator.Abilities](w, "/_abilities")); diff != "" {
		t.Error(diff)
	}
	w.abilities(`{"target":"desk","keys":"ignore","key_window_ms":5,"lookup":true,"lag_ms":7,"close":false}`)
	w.abilities(`{"target":"desk","keys":"honour","lookup":false,"close":true}`)
	want := everything
	want.Lookup = false
	if diff := cmp.Diff([]simulator.Abilities{want}, read[simulator.Abilities](w, "/_abilities?target=desk")); diff != "" {
		t.Error(diff)
	}
}

func TestAbilitiesThatCannotBe(t *testing.T) {
	w := start(t, database.SQLite)
	for body, says := range map[string]string{
		`{"target":"desk","keys":"honour","close":true}`:                                    "lookup is missing",
		`{"target":"moon","keys":"honour","lookup":true,"close":true}`:                      `no target "moon"`,
		`{"target":"desk","keys":"maybe","lookup":true,"close":true}`:                       "honour or ignore",
		`{"target":"desk","keys":"honour","key_window_ms":0,"lookup":true,"close":true}`:    "key_window_ms",
		`{"target":"desk","keys":"honour","lookup":true,"lag_ms":-1,"close":true}`:          "lag_ms",
		`{"target":"desk","keys":"honour","lookup":true,"lag_ms":1.5,"close":true}`:         "lag_ms cannot have this value",
		`{"target":"desk","keys":"honour","lookup":"yes","close":true}`:                     "lookup cannot have this value",
		`{"target":"desk","keys":"honour","lookup":true,"close":true,"webhooks":true}`:      "webhooks is not a member",
		`{"target":"desk","keys":"honour","lookup":true,"lag_ms":99999999999,"close":true}`: "lag_ms must be",
	} {
		a := w.do(t.Context(), "", "POST", "/_abilities", body)
		if check(t, a, 400, "invalid"); !strings.Contains(a.member("detail"), says) {
			t.Errorf("%s: %q does not say %q", body, a.member("detail"), says)
		}
	}
}
