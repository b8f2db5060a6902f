package simulator

import (
	"net/http"
	"strings"

	"github.com/einmal/einmal/pkg/database"
)

// optionalKey is the idempotency key of a request that may do without.
func optionalKey(r *http.Request) (string, error) {
	if len(r.Header.Values("Idempotency-Key")) == 0 {
		return "", nil
	}
	return keyHeader(r)
}

// oncePSP decides a request by Stripe's rules for idempotency keys (https://docs.stripe.com/api/idempotent_requests): the answer of
// whatever was begun, an error too, is given again for the same request, and another request with the key is refused. What was
// not begun, because a parameter is wrong or an object is not there, is not remembered.
func oncePSP(tx database.Tx, in request, begin func(database.Tx, request, *form) (Answer, error)) (Answer, error) {
	f, wrong := readForm(string(in.body))
	if wrong != nil {
		return wrong.answer(http.StatusBadRequest), nil
	}
	if in.EffectKey == "" || in.abilities.Keys != Honour {
		return begin(tx, in, f)
	}
	k, err := lockKey(tx, in.Call)
	if err != nil {
		return Answer{}, err
	}
	fingerprint := fingerprintOf([2]string{strings.TrimPrefix(in.http.URL.Path, "/psp"), f.values.Encode()})
	switch {
	case !k.remembers(in.abilities, tx.Now):
	case k.Fingerprint != fingerprint:
		return pspError{
			Type: pspKeyError, Message: "Keys for idempotent requests can only be used with the same parameters they were first used with. " +
				"Try using a key other than '" + in.EffectKey + "' if you meant to execute a different request.",
		}.answer(http.StatusBadRequest), nil
	default:
		return k.answer(), nil
	}
	answer, err := begin(tx, in, f)
	if err != nil || !answer.Decided {
		return answer, err
	}
	return answer, k.keep(tx, fingerprint, answer)
}

// keepPSPError makes a key remember the error that a fault has made of its answer, if it is Stripe's own: whatever was done is done,
// and the key answers with the error for as long as it is remembered.
func keepPSPError(tx database.Tx, in request, failed Answer) error {
	if in.EffectKey == "" || in.abilities.Keys != Honour || failed.Status < 500 {
		return nil
	}
	k := effectKey{Target: in.Target, EffectKey: in.EffectKey}
	return k.change(tx, map[string]any{"status": failed.Status, "body": failed.Body})
}
