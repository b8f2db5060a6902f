package catalogue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/catalogue"
)

func TestCheckEffects(t *testing.T) {
	if err := catalogue.CheckEffects("desk", []string{catalogue.TicketMirror}); err != nil {
		t.Error(err)
	}
	for what, c := range map[string]struct {
		types []string
		want  string
	}{
		"names a type that is in no entry":            {[]string{catalogue.TicketMirror, "ticket.burn"}, `target desk has effects of "ticket.burn", which is in no catalogue entry`},
		"names a type whose entry knows of no effect": {[]string{catalogue.TicketCreate}, `target desk has effects of "ticket.create", whose entry says that it has none`},
		"names a target that names no type":           {nil, "target desk says of no operation type"},
	} {
		t.Run(what, func(t *testing.T) {
			if err := catalogue.CheckEffects("desk", c.types); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Whoever is asked must be somebody, and be given time; nobody is asked about what has no effect.
func TestTermsOfReviews(t *testing.T) {
	for _, e := range catalogue.All() {
		if (len(e.Effects) > 0) != (e.ReviewOwner != "") || (len(e.Effects) > 0) != (e.ReviewDueSeconds > 0) {
			t.Errorf("%s: effects %q, reviewed by %q within %d s", e.Type, e.Effects, e.ReviewOwner, e.ReviewDueSeconds)
		}
		if terms := catalogue.TermsOf(e.Type); terms.Owner == "" || terms.Due <= 0 || terms.Escalation == "" {
			t.Errorf("%s: %+v", e.Type, terms)
		}
	}
	if terms := catalogue.TermsOf(catalogue.DeploymentCreate); terms.Due != time.Hour {
		t.Errorf("%+v", terms)
	}
	if terms := catalogue.TermsOf(""); terms.Due != 8*time.Hour || terms.Owner != "operator" {
		t.Errorf("about nothing of ours: %+v", terms)
	}
}
