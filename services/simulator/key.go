package simulator

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/einmal/einmal/pkg/database"
)

// maxKey is the length that our services' keys and those of common providers fit in.
const maxKey = 255

// parseKey checks an effect key. The error is a sentence.
func parseKey(key string) (string, error) {
	if key == "" || len(key) > maxKey {
		return "", errors.New("the effect key must have 1 to 255 characters")
	}
	for _, c := range []byte(key) {
		if c < '!' || c > '~' {
			return "", errors.New("the effect key must consist of visible ASCII characters")
		}
	}
	return key, nil
}

// keyHeader is the effect key of a send.
func keyHeader(r *http.Request) (string, error) {
	lines := r.Header.Values("Idempotency-Key")
	if len(lines) != 1 {
		return "", errors.New("send one header Idempotency-Key")
	}
	return parseKey(lines[0])
}

// effectKey is what a target knows of a key: the answer it remembers, and whether the key is closed.
type effectKey struct {
	Target      string
	EffectKey   string
	Fingerprint string
	Status      int // 0: nothing is remembered
	Body        []byte
	AnsweredAt  *time.Time
	Floor       int64
	ClosedAt    *time.Time
}

// lockKey reads what is known of a key and keeps every other send and close of it waiting until tx ends. It is the one point
// where they are put in order: a send is in the ledger before a close reads it, or finds the key closed.
func lockKey(tx database.Tx, call Call) (effectKey, error) {
	var k effectKey
	// The update changes nothing. It takes the row, as an insert that does nothing would not.
	err := tx.Raw(`INSERT INTO effect_keys (target, effect_key, fingerprint, status, floor) VALUES (?, ?, '', 0, 0)
		ON CONFLICT (target, effect_key) DO UPDATE SET effect_key = excluded.effect_key
		RETURNING *`, call.Target, call.EffectKey).Scan(&k).Error
	return k, err
}

// change sets columns of the key's row.
func (k effectKey) change(tx database.Tx, columns map[string]any) error {
	return tx.Table("effect_keys").Where("target = ? AND effect_key = ?", k.Target, k.EffectKey).Updates(columns).Error
}

// remembers reports whether a send of the key gets the answer that an earlier one got.
func (k effectKey) remembers(a Abilities, now time.Time) bool {
	return a.Keys == Honour && k.Status != 0 && now.Before(k.AnsweredAt.Add(a.keyWindow()))
}

// answer is what is remembered.
func (k effectKey) answer() Answer {
	return Answer{Status: k.Status, Body: k.Body, Decided: true, Replayed: true}
}

// keep remembers an answer.
func (k effectKey) keep(tx database.Tx, fingerprint string, answer Answer) error {
	return k.change(tx, map[string]any{
		"fingerprint": fingerprint, "status": answer.Status, "body": answer.Body, "answered_at": tx.Now,
	})
}

// underKey decides a send: by what the target remembers of its effect key, by its being closed, or else by effect, which
// makes the effect, answers a final refusal, or turns the send away, which is not remembered. command is what was decoded; two bodies that say the same are the same.
func underKey(tx database.Tx, in request, command any, effect func() (Answer, error)) (Answer, error) {
	k, err := lockKey(tx, in.Call)
	if err != nil {
		return Answer{}, err
	}
	fingerprint := fingerprintOf(command)
	if k.remembers(in.abilities, tx.Now) {
		if k.Fingerprint != fingerprint {
			return turnedAway(http.StatusUnprocessableEntity, codeKeyReused, "This effect key belongs to another body."), nil
		}
		return k.answer(), nil
	}
	fence, err := fenceHeader(in.http)
	switch {
	case err != nil:
		return turnedAway(http.StatusBadRequest, codeInvalid, err.Error()), nil
	case k.ClosedAt != nil, fence < k.Floor:
		return turnedAway(http.StatusConflict, codeClosed, "This effect key is closed for this send, which has no effect."), nil
	}
	answer, err := effect()
	if err != nil || in.abilities.Keys != Honour || !answer.Decided {
		return answer, err
	}
	return answer, k.keep(tx, fingerprint, answer)
}

func fingerprintOf(command any) string {
	sum := sha256.Sum256(encode(command))
	return hex.EncodeToString(sum[:])
}

// fenceHeader is the fence of a send: 0 unless the caller numbers its sends.
func fenceHeader(r *http.Request) (int64, error) {
	lines := r.Header.Values("Effect-Fence")
	if len(lines) == 0 {
		return 0, nil
	}
	fence, err := strconv.ParseInt(lines[0], 10, 64)
	if err != nil || fence < 0 || len(lines) > 1 {
		return 0, errors.New("the header Effect-Fence must be one whole number, not negative")
	}
	return fence, nil
}

// closeKey makes sends of the key that have no effect yet impossible, and returns the effects there are: those with a fence
// below floor, or all, if floor is 0. It may be repeated; a floor never sinks.
func closeKey(tx database.Tx, call Call, floor int64) ([]Effect, error) {
	k, err := lockKey(tx, call)
	if err != nil {
		return nil, err
	}
	switch {
	case floor > k.Floor:
		err = k.change(tx, map[string]any{"floor": floor})
	case floor == 0 && k.ClosedAt == nil:
		err = k.change(tx, map[string]any{"closed_at": tx.Now})
	}
	if err != nil {
		return nil, err
	}
	return effectsOf(tx, call.Target, call.EffectKey)
}

// inProgress are the effect keys of sends that are being worked on.
type inProgress struct {
	mu   sync.Mutex
	keys map[[2]string]bool
}

// enter reports whether no other send of the key is being worked on. If so this one is, until leave is called; calling it
// again does nothing.
func (p *inProgress) enter(target, effectKey string) (leave func(), first bool) {
	key := [2]string{target, effectKey}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys[key] {
		return func() {}, false
	}
	p.keys[key] = true
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.keys, key)
	}), true
}
