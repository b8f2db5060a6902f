package outbox

import "time"

// Ability is what a target can do about an effect. Each is a promise of the target; declaring one that it does not keep breaks
// what this package promises.
type Ability struct {
	// Key: it remembers effect keys and answers a repeated send like the first, for as long as KeyWindow after it.
	Key       bool
	KeyWindow time.Duration

	// Close: it can make every earlier send impossible that has not taken effect yet, and then says what happened. With Floor
	// it does so by a floor for fences that each send carries, so that a later send, with a higher fence, may still take effect.
	Close bool
	Floor bool

	// Lookup: it finds an effect by its effect key. Not finding one proves nothing: a send may be on its way, an index late.
	Lookup bool
}

// canAsk reports whether the target can say anything about an effect.
func (a Ability) canAsk() bool { return a.Close || a.Lookup }

// believe is what evidence means from a target with this ability. A verdict is one only where copies of a send are known by their
// key; elsewhere the target has refused this one. Nothing is no evidence of anything.
func (a Ability) believe(ev Evidence) Evidence {
	switch {
	case ev.Finding == Verdict && !a.Key:
		ev.Finding = Refused
	case ev.Finding == "":
		ev.Finding = Ambiguous
	}
	return ev
}
