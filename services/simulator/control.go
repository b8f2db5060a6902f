package simulator

import (
	"io"
	"log/slog"
	"net/http"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

// The control routes are for whoever directs the world and wants to know the truth. They need no token: who can connect may
// use them, which is why the simulator listens on loopback.
func (s *Service) controlRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /_faults", s.armFault)
	mux.HandleFunc("GET /_faults", s.list(func(read *gorm.DB) (any, error) {
		faults := []Fault{}
		return &faults, read.Order("id").Find(&faults).Error
	}))
	mux.HandleFunc("DELETE /_faults", s.disarmFaults)
	mux.HandleFunc("POST /_abilities", s.setAbilities)
	mux.HandleFunc("GET /_abilities", s.listAbilities)
	mux.HandleFunc("POST /_webhooks", s.setWebhook)
	mux.HandleFunc("GET /_webhooks", s.list(func(read *gorm.DB) (any, error) {
		events := []Event{}
		return &events, read.Order("id").Find(&events).Error
	}))
	mux.HandleFunc("GET /_ledger", s.list(func(read *gorm.DB) (any, error) {
		effects := []Effect{}
		err := read.Order("id").Find(&effects).Error
		for i, e := range effects {
			if e.EndedAt != nil && e.EndedAt.After(s.db.Now()) {
				effects[i].EndedAt = nil // it is planned, and has not come
			}
		}
		return &effects, err
	}))
	mux.HandleFunc("GET /_calls", s.list(func(read *gorm.DB) (any, error) {
		calls := []Call{}
		return &calls, read.Order("id").Find(&calls).Error
	}))
}

// armFault answers POST /_faults.
func (s *Service) armFault(w http.ResponseWriter, r *http.Request) {
	m, err := decodeMisfortune(controlBody(w, r))
	if err != nil {
		turnedAway(http.StatusBadRequest, codeInvalid, err.Error()).write(w)
		return
	}
	var f Fault
	err = s.batches.do(func(tx database.Tx) (err error) {
		f, err = m.arm(tx)
		return err
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.log.LogAttrs(r.Context(), slog.LevelInfo, "fault armed", slog.String("target", f.Target), slog.String("fault", f.ID),
		slog.String("action", string(f.Action)), slog.String("when", string(f.When)), slog.Int64("times", f.Times))
	Answer{Status: http.StatusCreated, Body: encode(f)}.write(w)
}

// disarmFaults answers DELETE /_faults.
func (s *Service) disarmFaults(w http.ResponseWriter, r *http.Request) {
	if err := s.batches.do(disarm); err != nil {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// setAbilities answers POST /_abilities.
func (s *Service) setAbilities(w http.ResponseWriter, r *http.Request) {
	a, err := decodeAbilities(controlBody(w, r))
	if err != nil {
		turnedAway(http.StatusBadRequest, codeInvalid, err.Error()).write(w)
		return
	}
	if err := s.batches.do(a.set); err != nil {
		s.fail(w, r, err)
		return
	}
	Answer{Status: http.StatusOK, Body: encode(a)}.write(w)
}

// setWebhook answers POST /_webhooks.
func (s *Service) setWebhook(w http.ResponseWriter, r *http.Request) {
	hook, err := decodeWebhook(controlBody(w, r))
	if err != nil {
		turnedAway(http.StatusBadRequest, codeInvalid, err.Error()).write(w)
		return
	}
	if err := s.batches.do(hook.set); err != nil {
		s.fail(w, r, err)
		return
	}
	s.webhooks.nudge()
	w.WriteHeader(http.StatusNoContent)
}

// listAbilities answers GET /_abilities: of every target, also where nobody has changed them.
func (s *Service) listAbilities(w http.ResponseWriter, r *http.Request) {
	asked, err := targetsAsked(r)
	if err != nil {
		turnedAway(http.StatusBadRequest, codeInvalid, err.Error()).write(w)
		return
	}
	all := []Abilities{}
	for _, t := range asked {
		a, err := abilitiesOf(s.db.Read(r.Context()), t.name)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		all = append(all, a)
	}
	Answer{Status: http.StatusOK, Body: encode(all)}.write(w)
}

// list answers GET /_faults, /_ledger and /_calls, each with ?target= or for all targets: a JSON array, the oldest first.
func (s *Service) list(find func(read *gorm.DB) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked, err := targetsAsked(r)
		if err != nil {
			turnedAway(http.StatusBadRequest, codeInvalid, err.Error()).write(w)
			return
		}
		names := make([]string, len(asked))
		for i, t := range asked {
			names[i] = t.name
		}
		items, err := find(s.db.Read(r.Context()).Where("target IN ?", names))
		if err != nil {
			s.fail(w, r, err)
			return
		}
		Answer{Status: http.StatusOK, Body: encode(items)}.write(w)
	}
}

// targetsAsked are the one that ?target= names, or all. The error is a sentence.
func targetsAsked(r *http.Request) ([]target, error) {
	name := r.URL.Query().Get("target")
	if name == "" {
		return targets, nil
	}
	t, err := targetNamed(name)
	return []target{t}, err
}

// controlBody is the body of a control request, or nothing where it cannot be read, which is no JSON object either.
func controlBody(w http.ResponseWriter, r *http.Request) []byte {
	const longest = 64 << 10 // a fault has a few hundred bytes
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longest))
	if err != nil {
		return nil
	}
	return body
}
