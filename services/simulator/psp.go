package simulator

import (
	"encoding/hex"
	"net/http"

	"github.com/google/uuid"

	"github.com/einmal/einmal/pkg/database"
)

// psp is a payment provider: Stripe, as far as card payments that are authorised first and captured later need it, as
// stripe-go speaks to it: requests are forms, answers JSON, and errors Stripe's.
//
// The routes are also there without /psp, as stripe-go takes no path before /v1: its BackendConfig.URL is http://HOST:PORT.
//
//	POST /psp/v1/payment_intents                      create: moves nothing, unless confirm=true
//	POST /psp/v1/payment_intents/{id}/confirm         confirm: authorises, or is declined (psp_card.go says which card is)
//	POST /psp/v1/payment_intents/{id}/capture         capture: once, amount_to_capture at most; the rest is released
//	POST /psp/v1/payment_intents/{id}/cancel          cancel: releases what is authorised; makes a later confirm impossible
//	POST /psp/v1/refunds                              refund: no more than was captured, in any number of parts
//	GET  /psp/v1/payment_intents/{id}                 retrieve
//	GET  /psp/v1/payment_intents                      list: the newest first, at once
//	GET  /psp/v1/payment_intents/search?query=…       search: metadata['name']:'value', from lag_ms after the creation
//	GET  /psp/v1/refunds/{id}                         retrieve_refund
//	GET  /psp/v1/refunds?payment_intent=…             list_refunds
//
// An effect's key is the header Idempotency-Key or, without it, the metadata einmal_effect_key; order and account in the ledger
// are what the metadata order_id and account_id of the intent say. The ability close has no meaning here: cancel closes.
var psp = target{
	name: "psp",
	operations: []string{
		pspCreate, pspConfirm, pspCapture, pspCancel, pspRefund, pspRetrieve, pspList, pspSearch, pspRetrieveRefund, pspListRefunds,
		webhookOperation,
	},
	actions:   append(append([]Action{}, everywhere...), Duplicate, Reorder),
	basic:     true,
	no:        pspNo,
	fault:     pspFault,
	keepError: keepPSPError,
}

const (
	pspCreate         = "create"
	pspConfirm        = "confirm"
	pspCapture        = "capture"
	pspCancel         = "cancel"
	pspRefund         = "refund"
	pspRetrieve       = "retrieve"
	pspList           = "list"
	pspSearch         = "search"
	pspRetrieveRefund = "retrieve_refund"
	pspListRefunds    = "list_refunds"

	kindAuthorize = "authorize"
	kindCapture   = "capture"
	kindVoid      = "void"
	kindRefund    = "refund"

	// What the services write into the metadata, so that their effects are found again.
	metadataEffectKey = "einmal_effect_key"
	metadataOrder     = "order_id"
	metadataAccount   = "account_id"
)

// pspAPI is what the payment provider does. Transactions are decided one after the other (batch.go), so an object that was
// read in one is as it was read when it is written.
type pspAPI struct{ webhooks *webhooks }

func (s *Service) pspRoutes(mux *http.ServeMux) {
	p := pspAPI{s.webhooks}
	send := func(pattern, kind string, begin func(database.Tx, request, *form) (Answer, error)) {
		handler := s.handle(operation{
			target: psp, kind: kind, sends: true, effectKey: optionalKey,
			decide: func(tx database.Tx, in request) (Answer, error) { return oncePSP(tx, in, begin) },
		})
		mux.HandleFunc("POST /psp/v1"+pattern, handler)
		mux.HandleFunc("POST /v1"+pattern, handler)
	}
	read := func(pattern, kind string, find func(database.Tx, request, *form) (Answer, error)) {
		handler := s.handle(operation{
			target: psp, kind: kind, reads: true,
			effectKey: func(*http.Request) (string, error) { return "", nil },
			decide:    func(tx database.Tx, in request) (Answer, error) { return readPSP(tx, in, find) },
		})
		mux.HandleFunc("GET /psp/v1"+pattern, handler)
		mux.HandleFunc("GET /v1"+pattern, handler)
	}
	send("/payment_intents", pspCreate, p.createIntent)
	send("/payment_intents/{id}/confirm", pspConfirm, p.confirmIntent)
	send("/payment_intents/{id}/capture", pspCapture, p.captureIntent)
	send("/payment_intents/{id}/cancel", pspCancel, p.cancelIntent)
	send("/refunds", pspRefund, p.createRefund)
	read("/payment_intents/{id}", pspRetrieve, p.retrieveIntent)
	read("/payment_intents", pspList, p.listIntents)
	read("/payment_intents/search", pspSearch, p.searchIntents)
	read("/refunds/{id}", pspRetrieveRefund, p.retrieveRefund)
	read("/refunds", pspListRefunds, p.listRefunds)
	mux.HandleFunc("/psp/v1/", pspRouteNotFound)
	mux.HandleFunc("/v1/", pspRouteNotFound)
}

func pspRouteNotFound(w http.ResponseWriter, r *http.Request) {
	pspNo(http.StatusNotFound, codeRouteNotFound, "Unrecognized request URL ("+r.Method+": "+r.URL.Path+").").write(w)
}

// readPSP answers a request that changes nothing.
func readPSP(tx database.Tx, in request, find func(database.Tx, request, *form) (Answer, error)) (Answer, error) {
	if !in.abilities.Lookup {
		return pspNo(http.StatusNotImplemented, codeNotOffered, "This payment provider offers no look-up."), nil
	}
	f, wrong := readForm(in.http.URL.RawQuery)
	if wrong != nil {
		return wrong.answer(http.StatusBadRequest), nil
	}
	return find(tx, in, f)
}

// newPSPID makes an identifier that sorts by when it was made.
func newPSPID(prefix string) string {
	id := uuid.Must(uuid.NewV7())
	return prefix + hex.EncodeToString(id[:])
}
