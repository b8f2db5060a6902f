package simulator

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/einmal/einmal/pkg/database"
)

// target is a system of others.
type target struct {
	name       string
	operations []string // the kinds of calls it knows
	actions    []Action // the faults it can have
	basic      bool     // the token may also be the user name of basic authentication

	// no is how it says that it did not deal with a request.
	no func(status int, code, detail string) Answer

	// fault is how a fault sounds that answers in its place.
	fault func(f *Fault, detail string) Answer

	// keepError makes it answer later requests of the effect key with an error that a fault made of its answer. nil: an error
	// on the way, of which the target knows nothing.
	keepError func(tx database.Tx, in request, failed Answer) error
}

// sendsEvents reports whether it tells webhooks what happened.
func (t target) sendsEvents() bool { return slices.Contains(t.operations, webhookOperation) }

// targets are all there are.
var targets = []target{desk, psp, cluster}

// targetNamed finds a target. The error is a sentence.
func targetNamed(name string) (target, error) {
	for _, t := range targets {
		if t.name == name {
			return t, nil
		}
	}
	return target{}, fmt.Errorf("there is no target %q; there are desk, psp and cluster", name)
}

// operation is one thing that a target can be asked.
type operation struct {
	target target
	kind   string

	reads bool // the read token is enough
	sends bool // one at a time for each effect key, where keys are honoured

	// effectKey finds the effect key in a request, or says what is wrong with it.
	effectKey func(r *http.Request) (string, error)

	// decide does what is asked, and answers. An error undoes it.
	decide func(tx database.Tx, in request) (Answer, error)
}

// request is a call with all that arrived.
type request struct {
	Call
	http      *http.Request
	body      []byte
	abilities Abilities // as of the transaction in which it is decided

	// first: no other send of the key is in progress. leave says that this one is not any more. It is called in a
	// transaction, so that nobody who sees what that has done is told otherwise; the key's row keeps the order from then on.
	first bool
	leave func()
}

// maxBody has room for the longest description a ticket may have, with every character escaped.
const maxBody = 4 << 20

// handle is the way of every request to a target. Once it has arrived nothing depends on the caller's connection.
func (s *Service) handle(op operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		var tooLarge *http.MaxBytesError
		if err != nil && !errors.As(err, &tooLarge) {
			panic(http.ErrAbortHandler) // cut off: it has not arrived
		}
		in := request{
			Call: Call{Target: op.target.name, ID: uuid.Must(uuid.NewV7()).String(), Kind: op.kind},
			http: r, body: body, first: true, leave: func() {},
		}
		var malformed error
		in.EffectKey, malformed = op.effectKey(r)
		known := s.tokens.allow(r, op.reads, op.target.basic)
		if op.sends && known && malformed == nil && in.EffectKey != "" {
			in.leave, in.first = s.inProgress.enter(op.target.name, in.EffectKey)
			defer in.leave()
		}

		busy, fault, err := s.receive(&in, known)
		switch {
		case err != nil:
			s.fail(w, r, err)
			return
		case !known:
			w.Header().Set("WWW-Authenticate", `Bearer realm="simulator"`)
			op.target.no(http.StatusUnauthorized, codeUnauthorized, "This token may not do that.").write(w)
			return
		case busy:
			w.Header().Set("Retry-After", retryAfter)
			op.target.no(http.StatusConflict, codeInProgress, "Another request with this effect key is being worked on.").write(w)
			return
		case fault != nil && !s.strike(w, r, fault):
			return
		}
		if tooLarge != nil {
			op.target.no(http.StatusRequestEntityTooLarge, codeInvalid, fmt.Sprintf("The body is longer than %d bytes.", maxBody)).write(w)
			return
		}
		if malformed != nil {
			op.target.no(http.StatusBadRequest, codeInvalid, malformed.Error()).write(w)
			return
		}

		answer, fault, err := s.decide(op, in)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.webhooks.nudge() // there may be an event now, whatever becomes of the answer
		if fault != nil && !s.strike(w, r, fault) {
			return
		}
		answer.write(w)
	}
}

// receive keeps the call before anything is done about it, and in the same transaction takes the fault that strikes it first.
// busy: another send of its key is in progress. A call that is turned away at the door is not struck.
func (s *Service) receive(in *request, known bool) (busy bool, fault *Fault, err error) {
	err = s.batches.do(func(tx database.Tx) error {
		in.At = tx.Now
		busy, fault = false, nil
		if !in.first {
			abilities, err := abilitiesOf(tx.DB, in.Target)
			if err != nil {
				return err
			}
			busy = abilities.Keys == Honour
		}
		if known && !busy {
			var err error
			if fault, err = takeFault(tx, in.Call, Before); err != nil {
				return err
			}
		}
		if in.Faulted = fault != nil; in.Faulted && fault.Action != Delay {
			in.leave() // nothing will be done
		}
		return in.Call.record(tx)
	})
	s.log.LogAttrs(in.http.Context(), slog.LevelDebug, "call", slog.String("target", in.Target), slog.String("kind", in.Kind),
		slog.String("effect_key", in.EffectKey), slog.Bool("faulted", in.Faulted))
	return busy, fault, err
}

// decide does what the request asks in one transaction, which also takes the fault that strikes its answer.
func (s *Service) decide(op operation, in request) (answer Answer, fault *Fault, err error) {
	err = s.batches.do(func(tx database.Tx) (err error) {
		defer in.leave()
		if in.abilities, err = abilitiesOf(tx.DB, in.Target); err != nil {
			return err
		}
		fault = nil
		if answer, err = op.decide(tx, in); err != nil || !answer.Decided {
			return err
		}
		if fault, err = takeFault(tx, in.Call, After); err != nil || fault == nil {
			return err
		}
		if fault.Action == Status && op.target.keepError != nil && !answer.Replayed {
			if err := op.target.keepError(tx, in, fault.instead()); err != nil {
				return err
			}
		}
		return in.Call.markFaulted(tx)
	})
	return answer, fault, err
}

// fail answers when the simulator itself did not work. Whether there was an effect the ledger says, not this answer.
func (s *Service) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.log.LogAttrs(r.Context(), slog.LevelError, "request failed", slog.String("route", r.Pattern), slog.String("error", err.Error()))
	turnedAway(http.StatusInternalServerError, codeInternal, "The simulator failed; its log says why.").write(w)
}
