package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/record"
	"github.com/einmal/einmal/services/simulator"
)

// attempt is what a service has noted of a call to a target.
type attempt struct {
	kind, key, outcome, says string
	began, ended             time.Time // ended is zero if it never knew
	told                     bool      // it has become a step
}

// call is what a simulator has noted of one.
type call struct {
	simulator.Call
	world string
	told  bool
}

// slack is by how much the clocks of a simulator and a service may seem to disagree: both go by their databases', which they ask now and then.
const slack = 20 * time.Millisecond

// tellOutside tells what services and simulators said to each other. Nobody stands between them, so it is told from what each has noted: the
// simulator that a call came, the service what it heard.
func (s *story) tellOutside() {
	s.markProxied()
	for _, c := range s.calls {
		if !c.told {
			s.tellCall(c, s.attemptOf(c.Call))
		}
	}
	for _, a := range s.attempts {
		if !a.told {
			s.tellUnarrived(a)
		}
	}
	for _, w := range s.Worlds {
		for _, e := range w.Ledger {
			s.add(step{
				at: e.At, from: w.Address, label: "effect: " + e.Kind, details: []string{shorten(e.Reference)}, tone: effect,
				title: "effect key " + e.EffectKey,
			})
		}
	}
}

// readOutside reads what each has noted, in order of time.
func (s *story) readOutside() {
	for _, d := range s.Databases {
		keys := map[string]string{}
		for row := range rowsOf(d, "effects") {
			keys[row.text("id")] = row.text("effect_key")
		}
		for row := range rowsOf(d, "attempts") {
			s.attempts = append(s.attempts, &attempt{
				kind: row.text("kind"), key: keys[row.text("effect_id")], outcome: row.text("outcome"), says: row.text("error"),
				began: row.time("started_at", d.Behind), ended: row.time("ended_at", d.Behind),
			})
		}
	}
	for _, w := range s.Worlds {
		for _, c := range w.Calls {
			s.calls = append(s.calls, &call{Call: c, world: w.Address})
		}
	}
	slices.SortStableFunc(s.attempts, func(a, b *attempt) int { return a.began.Compare(b.began) })
	slices.SortStableFunc(s.calls, func(a, b *call) int { return a.At.Compare(b.At) })
	s.byKey = map[string][]*attempt{}
	for _, a := range s.attempts {
		s.byKey[a.key] = append(s.byKey[a.key], a)
	}
}

// markProxied marks the calls that a proxy was recorded passing on: they are told as its messages.
func (s *story) markProxied() {
	for _, m := range s.Messages {
		if !s.lives.isWorld(m.To) || s.lives.places[m.From].Kind != record.Proxy {
			continue
		}
		for _, c := range s.calls {
			if !c.told && about(m, c.EffectKey) && c.world == m.To && within(c.At, m.Sent, m.Ended) {
				c.told = true
				break
			}
		}
	}
}

// tellForeign tells a message to a proxy that no caller sent: it comes from a process, which has noted what it heard.
func (s *story) tellForeign(m record.Message) {
	m.From = s.lives.sender(m.Sent)
	a := s.attemptBehind(m)
	if a == nil {
		s.tellMessage(m)
		return
	}
	request := step{at: m.Sent, from: m.From, to: m.To, label: a.kind, details: []string{shorten(a.key)}, title: m.Method + " " + m.Path, tone: plain}
	s.add(slices.Concat([]step{request}, s.faultOf(m), []step{a.heard(m.To, m.From)})...)
}

// attemptBehind is the attempt that a message to a proxy is part of, nil if it is none.
func (s *story) attemptBehind(m record.Message) *attempt {
	key := m.Key
	for known := range s.byKey {
		if about(m, known) {
			key = known
		}
	}
	return s.claim(key, m.Sent, func(a *attempt) bool { return within(m.Sent, a.began, a.until(m.Sent)) })
}

// attemptOf is the attempt that a call is part of, nil if there is none.
func (s *story) attemptOf(c simulator.Call) *attempt {
	if c.EffectKey != "" {
		return s.claim(c.EffectKey, c.At, func(a *attempt) bool { return slices.Contains(attemptsBy(c.Kind), a.kind) })
	}
	for _, a := range s.attempts { // a payment provider is asked by its own reference, which says no key; whatever moves money says one
		if !a.told && a.kind != "send" && slices.Contains(attemptsBy(c.Kind), a.kind) && within(c.At, a.began, a.until(c.At)) {
			a.told = true
			return a
		}
	}
	return nil
}

// attemptsBy are the kinds of attempts that a call of this kind may be made by. Desks and clusters call them alike; a payment provider has
// names of its own, and a call that prepares a send (create) has another key than what it prepares.
func attemptsBy(call string) []string {
	switch call {
	case "confirm", "capture", "refund", "stop":
		return []string{"send"}
	case "cancel":
		return []string{"send", "close"}
	case "retrieve", "list", "search", "retrieve_refund", "list_refunds":
		return []string{"lookup", "close"}
	}
	return []string{call}
}

// claim finds the last attempt under a key that had begun at a moment, is fitting, and that nothing else belongs to. Now it belongs to something.
func (s *story) claim(key string, at time.Time, fits func(*attempt) bool) *attempt {
	for _, tolerance := range []time.Duration{0, slack} {
		for _, a := range slices.Backward(s.byKey[key]) {
			if !a.told && !a.began.After(at.Add(tolerance)) && fits(a) {
				a.told = true
				return a
			}
		}
	}
	return nil
}

// tellCall tells a call that has arrived, and what its sender heard.
func (s *story) tellCall(c *call, a *attempt) {
	began := c.At
	if a != nil {
		began = a.began
	}
	from := s.lives.sender(began)
	arrow := step{at: c.At, from: from, to: c.world, label: c.Kind, tone: plain}
	if c.EffectKey != "" {
		arrow.details, arrow.title = []string{shorten(c.EffectKey)}, "effect key "+c.EffectKey
	}
	if a == nil { // it is not known what became of it
		s.add(arrow)
		return
	}
	answer := a.heard(c.world, from)
	answer.details = arrow.details
	if a.ended.IsZero() {
		answer.at = s.deathOf(from, c.At)
	}
	if c.Faulted {
		answer.title = strings.TrimSpace("struck by a fault. " + answer.title)
	}
	if !a.ended.IsZero() && a.ended.Before(c.At) && answer.lost { // its sender has left by the time it arrives
		answer = step{at: a.ended, from: from, label: shorten(a.kind + " given up: " + a.says), details: arrow.details, tone: wait}
	}
	s.add(arrow, answer)
}

// heard is what the sender of an attempt heard of it.
func (a *attempt) heard(world, sender string) step {
	h := step{at: a.ended, from: world, to: sender, answer: true, label: strings.ReplaceAll(a.outcome, "_", " "), title: a.says, tone: plain}
	switch a.outcome {
	case "":
		h.at, h.label, h.tone, h.lost = a.began, "nobody hears the answer", broken, true
	case "confirmed":
		h.tone = replay
		if a.kind == "send" {
			h.tone = effect
		}
	case "ambiguous", "not_sent":
		h.label, h.tone = h.label+": "+a.says, wait
		h.lost = !strings.Contains(a.says, "answered") // else there was an answer, of no use
		if h.lost {
			h.tone = broken
		}
	case "refused", "verdict":
		h.label, h.tone = h.label+": "+a.says, refuse
	}
	const most = 40 // characters: the whole of it is shown when the arrow is pointed at
	h.label = shortenTo(most, h.label)
	return h
}

// tellUnarrived tells an attempt that no call is known to belong to.
func (s *story) tellUnarrived(a *attempt) {
	if len(s.Worlds) == 0 || s.Worlds[0].Err != "" {
		return // nobody can say that it did not arrive
	}
	unheard := step{
		at: a.began, from: s.lives.sender(a.began), to: s.Worlds[0].Address, label: shorten(a.kind + ", " + cmp.Or(a.says, "it did not arrive")),
		details: []string{shorten(a.key)}, title: strings.TrimSpace("effect key " + a.key + "\n" + a.says), tone: broken, lost: true,
	}
	switch {
	case strings.Contains(a.says, "answered"): // by a call under another key
		unheard.tone, unheard.lost = wait, false
	case a.outcome != "" && a.outcome != "ambiguous" && a.outcome != "not_sent":
		return // it was answered, and the calls that it made are told
	}
	s.add(unheard)
}

// deathOf is when a process ended that was alive at a moment: what it had sent until then it never heard of.
func (s *story) deathOf(address string, since time.Time) time.Time {
	for _, m := range s.Marks {
		if (m.Place == address || address == somebody) && m.At.After(since) && (m.Event == record.Killed || m.Event == record.Ended) {
			return m.At
		}
	}
	return since
}

func about(m record.Message, effectKey string) bool {
	return effectKey != "" && (m.Key == effectKey || strings.Contains(m.Path, effectKey))
}

func within(moment, from, to time.Time) bool {
	return !moment.Before(from.Add(-slack)) && !moment.After(to.Add(slack))
}

// until is when the attempt ended, or a moment at which it had not.
func (a *attempt) until(moment time.Time) time.Time {
	if a.ended.IsZero() {
		return moment
	}
	return a.ended
}
