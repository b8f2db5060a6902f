package catalogue_test

import (
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/catalogue"
)

func TestCheckRoutes(t *testing.T) {
	operations := map[string]string{"POST /v1/tickets": catalogue.TicketCreate}
	sound := []string{"GET /v1/tickets", "POST /v1/tickets", "POST /v1/fingerprints", "POST /v1/hooks/alertmanager"}

	t.Run("accepts reads, declared writes and exempt ones", func(t *testing.T) {
		if err := catalogue.CheckRoutes(sound, operations, catalogue.Exempt); err != nil {
			t.Error(err)
		}
	})

	for what, c := range map[string]struct {
		routes     []string
		operations map[string]string
		want       []string
	}{
		"names every write without a type": {
			append([]string{"DELETE /v1/tickets/:id", "PATCH /v1/tickets/:id"}, sound...), operations,
			[]string{"DELETE /v1/tickets/:id writes", "PATCH /v1/tickets/:id writes"},
		},
		"treats a method it does not know as a write": {
			append([]string{"REBASELINE /v1/tickets"}, sound...), operations, []string{"REBASELINE /v1/tickets writes"},
		},
		"names a type that is not in the catalogue": {
			sound, map[string]string{"POST /v1/tickets": "ticket.burn"}, []string{`POST /v1/tickets is declared as "ticket.burn"`},
		},
		"names a declaration without a route": {
			sound,
			map[string]string{"POST /v1/tickets": catalogue.TicketCreate, "PUT /v1/tickets/:id": catalogue.TicketCreate},
			[]string{"PUT /v1/tickets/:id has an operation type and is no route"},
		},
		"exempts no more than the pattern says": {
			append([]string{"POST /v1/fingerprints/:id", "PUT /v1/hooks/psp"}, sound...), operations,
			[]string{"POST /v1/fingerprints/:id writes", "PUT /v1/hooks/psp writes"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			err := catalogue.CheckRoutes(c.routes, c.operations, catalogue.Exempt)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if strings.Count(err.Error(), "\n") != len(c.want)-1 {
				t.Errorf("error names more than %q: %v", c.want, err)
			}
		})
	}
}
