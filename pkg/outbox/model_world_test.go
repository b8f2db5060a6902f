package outbox

import (
	"fmt"
)

// world is a state of the model: the row, two workers who also ask, and everything outside, which is the judge of what is true.
// A pause is that somebody does not move.
type world struct {
	claimed bool
	row     row
	life    uint8 // of the claim: 1 after a failover forgot it
	workers [2]worker

	flying            [2]uint16 // requests under way: for each life, a bit for each fence
	effects           uint8
	remembered        [2]answerNo // what the target keeps under an effect key; two, if lives don't share one
	indexed           bool        // look-ups find the effect
	floor             uint8       // sends below it are refused
	tellsYes, tellsNo bool        // webhooks: it happened; one attempt failed
	windowOver        bool        // the target has forgotten its keys
	told              uint8       // final answers that clients have seen, a bit for each
	tookLate          bool        // it was taken to be sent after its deadline
	tookUnasked       bool        // it was taken to be sent without a yes that held, or into another world
	wasted            bool        // positive evidence was thrown away while the operation was open
	kills, pauses     uint8       // how often each has happened, as far as it is bounded
	cancels, repeats  uint8
	failures          uint8
}

// worker is a process with its view of the effect.
type worker struct {
	at     place
	view   row // as it was taken
	life   uint8
	kind   asking
	answer answerNo
}

type place uint8

const (
	idle     place = iota
	taken          // it may send
	waiting        // it has sent
	answered       // it knows what the send has shown
	asking_        // it has taken the row to ask
	heard          // it knows what asking has shown
)

type asking uint8

const (
	askNobody asking = iota
	askLookup
	askClose
)

var askKinds = map[string]asking{"": askNobody, kindLookup: askLookup, kindClose: askClose}

func (a asking) kind() string {
	return map[asking]string{askLookup: kindLookup, askClose: kindClose}[a]
}

// answerNo is what a call has shown.
type answerNo uint8

const (
	nothing  answerNo = iota
	yes               // it happened
	declines          // the business refuses, and would refuse every copy
	refuses           // this send only: 401, 429, no connection, below the floor
	noAnswer          // a time-out, a reset, a 5xx
	notThere          // a look-up found nothing
	shutNow           // closed before anything happened
)

// before puts workers, who are all alike, in an order.
func (w worker) before(other worker) bool {
	return w.number() < other.number()
}

func (w worker) number() uint64 {
	return w.view.number()<<16 | uint64(w.at)<<12 | uint64(w.life)<<8 | uint64(w.kind)<<4 | uint64(w.answer)
}

// assumptions are what no rule can replace.
type assumptions struct {
	sendsOnce  bool // the transport never repeats a request by itself
	claimsLast bool // no failover forgets a committed claim
	delaysEnd  bool // the key window ends only after all requests have arrived, and no worker is between take and send
	keysLast   bool // the target never forgets a key
	nobodyDies bool // no process is killed
	deadline   bool // the effect has one
	approval   bool // a person must agree to it
}

var (
	fair      = assumptions{sendsOnce: true, claimsLast: true, delaysEnd: true}
	unbounded = assumptions{sendsOnce: true, claimsLast: true}
	forgetful = assumptions{sendsOnce: true, delaysEnd: true, keysLast: true}
)

// What happens this often at most, so that the search ends.
const (
	maxKills    = 1
	maxPauses   = 1 // leases that end while their worker lives
	maxFailures = 1 // calls that show nothing
)

// judge says what is wrong with the world, if anything is.
func (w world) judge() string {
	switch state := w.row.state; {
	case w.effects > 1:
		return "two effects"
	case w.told&(w.told-1) != 0:
		return "contradictory final answers"
	case !w.claimed:
		return ""
	case state == isSucceeded && w.effects == 0:
		return "succeeded, and nothing happened"
	case (state == isFailed || state == isCanceled) && w.effects > 0:
		return fmt.Sprintf("%s, and it happened", state)
	case w.wasted:
		return "evidence thrown away"
	case w.tookLate:
		return "sent after its deadline"
	case w.tookUnasked:
		return "sent without an approval"
	}
	return ""
}

// rests: it has ended, or a person has been asked.
func (w world) rests() bool {
	return w.claimed && (w.row.state.final() || w.row.state == isUnknown && w.row.review)
}

// quiet: nothing is under way that could still have an effect.
func (w world) quiet() bool {
	return w.flying == [2]uint16{} && w.workers[0].at != taken && w.workers[1].at != taken
}

// held: the worker who took the row lives.
func (w world) held() bool {
	for _, q := range w.workers {
		if q.at != idle && q.life == w.life && q.view.fence == w.row.fence {
			return true
		}
	}
	return false
}

// outside is what the network, the target and time may do next.
func (m *protocol) outside(w world, add func(string, func(*world))) {
	for life := range w.flying {
		for fence := uint8(1); fence < 16; fence++ {
			if w.flying[life]&(1<<fence) != 0 {
				m.arrival(w, uint8(life), fence, add)
			}
		}
	}
	if w.effects > 0 && !w.indexed {
		add("target: the index catches up", func(n *world) { n.indexed = true })
	}
	if w.row.lease == ahead {
		switch {
		case !w.held():
			add("time: the lease of a dead worker ends", func(n *world) { n.row.lease = passed })
		case w.pauses < maxPauses:
			add("time: the lease ends", func(n *world) { n.row.lease = passed; n.pauses++ })
		}
	}
	calm := w.quiet() && (w.effects == 0 || w.indexed)
	if m.target.Ability.Key && !m.assume.keysLast && w.row.window == ahead && !w.windowOver && (calm || !m.assume.delaysEnd) {
		add("time: the key window ends, the target forgets", func(n *world) {
			n.windowOver, n.remembered = true, [2]answerNo{}
			m.windowEnds(&n.row)
			m.windowEnds(&n.workers[0].view)
			m.windowEnds(&n.workers[1].view)
		})
	}
	if w.row.deadline == ahead && !w.row.state.final() {
		add("time: the deadline passes", func(n *world) {
			for _, r := range []*row{&n.row, &n.workers[0].view, &n.workers[1].view} {
				if r.deadline == ahead {
					r.deadline = passed
				}
			}
		})
	}
	m.consentEnds(w, add)
	if !m.assume.claimsLast && w.life == 0 && w.claimed && !w.row.state.final() {
		add("failover: the claim is forgotten", func(n *world) { n.claimed, n.row, n.life = false, row{}, 1 })
	}
}

func (m *protocol) windowEnds(r *row) {
	again := r.attempts > 1 && !m.rules.WindowFromFirst // by that, the window began anew with the last send
	if r.window == ahead && !again {
		r.window = passed
	}
}

// arrival is what may become of a request under way.
func (m *protocol) arrival(w world, life, fence uint8, add func(string, func(*world))) {
	add("network: the request is lost", func(n *world) { n.flying[life] &^= 1 << fence })
	arrives := func(what string, answer answerNo, do func(*world)) {
		for _, lost := range []bool{false, true} {
			for _, again := range []bool{false, true} {
				if again && (m.assume.sendsOnce || w.repeats > 0) {
					continue
				}
				label := "target: " + what
				if lost {
					label += ", the answer is lost"
				}
				if again {
					label += ", the transport will repeat the request"
				}
				add(label, func(n *world) {
					if again {
						n.repeats++
					} else {
						n.flying[life] &^= 1 << fence
					}
					do(n)
					for i := range n.workers {
						if q := &n.workers[i]; !lost && q.at == waiting && q.view.fence == fence && q.life == life {
							q.at, q.answer = answered, answer
						}
					}
				})
			}
		}
	}
	key := m.effectKey(life)
	switch ability := m.target.Ability; {
	case ability.Key && w.remembered[key] != nothing:
		arrives("the same key, the same answer", w.remembered[key], func(*world) {})
	case ability.Close && fence < w.floor:
		arrives("refuses what is below the floor", refuses, func(*world) {})
	default:
		arrives("EFFECT", yes, func(n *world) {
			n.effects++
			n.indexed, n.tellsYes, n.remembered[key] = false, true, yes
		})
		arrives("declines", declines, func(n *world) { n.remembered[key] = declines })
		if w.failures < maxFailures {
			arrives("refuses this send", refuses, func(n *world) { n.failures++; n.tellsNo = true })
		}
	}
}

// ask is what the target answers to a worker who asks.
func (m *protocol) ask(n *world, i int) {
	q := &n.workers[i]
	q.at = heard
	switch q.kind {
	case askClose:
		if floor := m.closesBelow(q.view.fence); m.rules.RaiseFirst {
			n.floor = max(n.floor, floor)
		}
		q.answer = shutNow
		if n.effects > 0 {
			q.answer = yes
		}
	case askLookup:
		q.answer = notThere
		if n.effects > 0 && n.indexed {
			q.answer = yes
		}
	}
}

// closesBelow is the floor that a close raises: for good, where the target has no fences.
func (m *protocol) closesBelow(fence uint8) uint8 {
	if m.target.Ability.Floor {
		return fence
	}
	return 255
}

// effectKey is which of the target's two memories a life's effect key names.
func (m *protocol) effectKey(life uint8) uint8 {
	return bit(m.keys[life] != m.keys[0])
}
