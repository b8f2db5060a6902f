package simulator

import (
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/einmal/einmal/pkg/database"
)

// desk is a ticket desk of somebody else, in which a ticket can be opened. Every ticket is an effect of kind ticket.
//
//	POST /desk/v1/tickets                      send: opens a ticket; header Idempotency-Key is the effect key, and
//	                                           Effect-Fence numbers the sends of one key (0 unless sent)
//	GET  /desk/v1/tickets?effect_key=KEY       lookup: the tickets under the key
//	POST /desk/v1/effects/{effect_key}/close   close: with {"floor": N} no send of the key with a lower fence has an effect
//	                                           from now on, with {} none at all; says whether one had
var desk = target{
	name:       "desk",
	operations: []string{deskSend, deskLookup, deskClose},
	actions:    everywhere,
	no:         turnedAway,
	fault:      wordless,
}

const (
	deskSend   = "send"
	deskLookup = "lookup"
	deskClose  = "close"

	kindTicket = "ticket"

	// refusedProject is the one project in which the desk opens no ticket, for good: a business refusal to be had at will.
	refusedProject = "refused"
)

func (s *Service) deskRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /desk/v1/tickets", s.handle(operation{
		target: desk, kind: deskSend, sends: true, effectKey: keyHeader, decide: openTicket,
	}))
	mux.HandleFunc("GET /desk/v1/tickets", s.handle(operation{
		target: desk, kind: deskLookup, reads: true, decide: lookUpTickets,
		effectKey: func(r *http.Request) (string, error) { return parseKey(r.URL.Query().Get("effect_key")) },
	}))
	mux.HandleFunc("POST /desk/v1/effects/{effect_key}/close", s.handle(operation{
		target: desk, kind: deskClose, decide: closeTicketKey,
		effectKey: func(r *http.Request) (string, error) { return parseKey(r.PathValue("effect_key")) },
	}))
}

// newTicket is the body of a send.
type newTicket struct {
	Title       string `json:"title"`
	Description string `json:"description,omitzero"`
	Project     string `json:"project,omitzero"`
	ExternalID  string `json:"external_id,omitzero"` // the caller's own name for it
	Account     string `json:"account,omitzero"`     // on whose behalf; the ledger keeps it
}

const (
	maxTitle   = 200 // characters
	maxName    = 255 // characters of the shorter members
	maxDetails = 500_000
)

func (t newTicket) validate() error {
	switch {
	case t.Title == "" || utf8.RuneCountInString(t.Title) > maxTitle:
		return errors.New("title must have 1 to 200 characters")
	case len(t.Description) > maxDetails:
		return errors.New("description must have 500 000 bytes at most")
	}
	for _, name := range []string{t.Project, t.ExternalID, t.Account} {
		if _, err := parseKey(name); name != "" && err != nil {
			return errors.New("project, external_id and account must have at most 255 characters, all visible ASCII")
		}
	}
	return nil
}

// ticket is a ticket as the desk shows it.
type ticket struct {
	Reference string    `json:"reference"`
	EffectKey string    `json:"effect_key"`
	CreatedAt time.Time `json:"created_at"`
}

// openTicket answers a send.
func openTicket(tx database.Tx, in request) (Answer, error) {
	var t newTicket
	err := decode(in.body, &t, "title")
	if err == nil {
		err = t.validate()
	}
	if err != nil {
		return turnedAway(http.StatusBadRequest, codeInvalid, err.Error()), nil
	}
	return underKey(tx, in, t, func() (Answer, error) {
		if t.Project == refusedProject {
			return decided(http.StatusUnprocessableEntity, failure{codeRefused, "The desk takes no tickets for this project."}), nil
		}
		id := uuid.Must(uuid.NewV7()).String()
		e := Effect{
			Target: desk.name, ID: id, Kind: kindTicket, EffectKey: in.EffectKey,
			Reference: "desk_" + id, Account: t.Account, At: tx.Now,
		}
		return decided(http.StatusCreated, ticket{e.Reference, e.EffectKey, e.At}), e.record(tx)
	})
}

// lookUpTickets answers a look-up: an empty list says that the desk shows no such ticket now, nothing more.
func lookUpTickets(tx database.Tx, in request) (Answer, error) {
	if !in.abilities.Lookup {
		return turnedAway(http.StatusNotImplemented, codeNotOffered, "This desk offers no look-up."), nil
	}
	effects, err := effectsOf(tx, in.Target, in.EffectKey)
	if err != nil {
		return Answer{}, err
	}
	found := struct {
		Items []ticket `json:"items"`
	}{[]ticket{}}
	for _, e := range effects {
		if !tx.Now.Before(e.At.Add(in.abilities.lag())) {
			found.Items = append(found.Items, ticket{e.Reference, e.EffectKey, e.At})
		}
	}
	return decided(http.StatusOK, found), nil
}

// closed is the answer to a close.
type closed struct {
	EffectKey string `json:"effect_key"`
	Happened  bool   `json:"happened"`
	Reference string `json:"reference,omitzero"` // of the first effect
}

// closeTicketKey answers a close. Its answer is conclusive, whatever look-ups show.
func closeTicketKey(tx database.Tx, in request) (Answer, error) {
	if !in.abilities.Close {
		return turnedAway(http.StatusNotImplemented, codeNotOffered, "This desk cannot close effect keys."), nil
	}
	var command struct {
		Floor int64 `json:"floor,omitzero"`
	}
	if len(in.body) > 0 {
		err := decode(in.body, &command)
		if err == nil && command.Floor < 0 {
			err = errors.New("floor must not be negative")
		}
		if err != nil {
			return turnedAway(http.StatusBadRequest, codeInvalid, err.Error()), nil
		}
	}
	effects, err := closeKey(tx, in.Call, command.Floor)
	if err != nil {
		return Answer{}, err
	}
	answer := closed{EffectKey: in.EffectKey}
	if len(effects) > 0 {
		answer.Happened, answer.Reference = true, effects[0].Reference
	}
	return decided(http.StatusOK, answer), nil
}
