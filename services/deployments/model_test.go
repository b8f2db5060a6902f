package deployments

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/database"
)

// The lock of one environment with two deployments, of which one holds it and one waits, in front of a cluster whose requests can be delayed
// without bound: every interleaving. Who holds the environment, which tokens are drawn and what is learned are rows that the service's own
// statements change; what becomes of the effects, their senders and the cluster is the model's.

// lockRules are those of docs/protocol.md, rule 14. Switched off, a rule is broken by a wrong variant of the one step that keeps it.
type lockRules struct {
	CloseRaisesFloor bool // asking about an unsettled holder raises the cluster's floor above its token first
	NotFoundKeeps    bool // "not found" without a floor never frees the lock
	PersonNeedsClose bool // a person's word counts only after the floor is confirmed
	OneAtATime       bool // the cluster begins no rollout while another goes on
	ClusterFences    bool // the cluster refuses tokens below its floor
	HolderDraws      bool // only the holder draws a token, and so is sent
}

var everyLockRule = lockRules{true, true, true, true, true, true}

// lockWorld is a state: our rows, senders, the network and the cluster.
type lockWorld struct {
	rows  lockRows
	d     [2]lockDeployment
	floor uint8 // of the cluster
	last  uint8 // the token of the last rollout that began
	back  bool  // one began with a token that was not above it
}

// lockDeployment is what there is of a deployment beside its rows.
type lockDeployment struct {
	marked  uint8 // one bit for each token whose sender has not sent yet: it is slow, or paused, or dead
	flying  uint8 // one bit for each token whose request is on its way
	takes   uint8
	rollout uint8 // at the cluster: 0 none, 1 goes on, 2 has ended
	asked   uint8 // an answer in hand: 0 none, 1 closed and nothing had begun, 2 not found
}

// maxTakes bounds how often each is sent: what goes wrong with three goes wrong with two.
const maxTakes = 2

// maxToken is the last that is drawn then: each close takes one, too.
const maxToken = 7

// lockStep is one labelled way on.
type lockStep struct {
	label string
	to    lockWorld
}

func (m *lockModel) next(w lockWorld) (all []lockStep) {
	add := func(label string, do func(n *lockWorld)) {
		n := w
		do(&n)
		if n != w {
			all = append(all, lockStep{label, n})
		}
	}
	for i := range w.d {
		m.service(w, i, add)
		m.outside(w, i, add)
	}
	return all
}

// service is what the service does about a deployment.
func (m *lockModel) service(w lockWorld, i int, add func(string, func(*lockWorld))) {
	name, d, r := [...]string{"D1", "D2"}[i], w.d[i], w.rows.of[i]
	if r.state == dQueued && (r.due || !m.rules.HolderDraws) && d.takes < maxTakes {
		if after, ok := m.do("draw", w.rows, i, 0); ok {
			add(name+": is taken to be sent", func(n *lockWorld) {
				n.rows = after
				n.d[i].takes++
				n.d[i].marked, n.d[i].asked = d.marked|1<<after.of[i].token, 0
			})
		}
	}
	if r.state == dQueued && r.due && d.takes == maxTakes { // it was closed before it was queued again
		m.ends(w, i, dFailed, name+": fails, since it may not be sent again", add)
	}
	for token := uint8(1); token <= maxToken; token++ {
		if d.marked&(1<<token) != 0 {
			add(fmt.Sprintf("%s: its sender sends with token %d", name, token), func(n *lockWorld) {
				n.d[i].marked, n.d[i].flying = d.marked&^(1<<token), d.flying|1<<token
			})
		}
	}
	if r.state == dRunning {
		add(name+": its lease ends", func(n *lockWorld) { n.rows.of[i].state = dUnknown })
	}
	if r.state == dUnknown && d.asked == 0 {
		if m.rules.CloseRaisesFloor {
			floor := max(w.floor, r.token+1)
			after, _ := m.do("floor", w.rows, i, floor)
			add(name+": is closed at the cluster", func(n *lockWorld) {
				n.floor, n.rows = floor, after
				if d.rollout == 0 {
					n.d[i].asked = 1
				}
			})
		} else if d.rollout == 0 {
			add(name+": is not found", func(n *lockWorld) { n.d[i].asked = 1 })
		}
		if d.rollout == 0 && !m.rules.NotFoundKeeps {
			add(name+": is looked up, and not found", func(n *lockWorld) { n.d[i].asked = 2 })
		}
	}
	if r.state == dUnknown && d.asked == 1 {
		add(name+": is queued again", func(n *lockWorld) { n.rows.of[i].state, n.rows.of[i].due, n.d[i].asked = dQueued, true, 0 })
	}
	if r.state == dUnknown && d.asked != 0 {
		m.ends(w, i, dFailed, name+": fails, since nothing has begun", add)
	}
	if (r.state == dRunning || r.state == dUnknown) && d.rollout == 2 {
		m.ends(w, i, dSucceeded, name+": succeeds by evidence", add)
	}
	if r.state == dUnknown && d.rollout == 0 {
		if _, may := m.do("may decide", w.rows, i, 0); may || !m.rules.PersonNeedsClose {
			m.ends(w, i, dFailed, name+": fails by a person's word", add)
		}
	}
}

// ends settles a deployment, which hands the lock on.
func (m *lockModel) ends(w lockWorld, i int, state dState, label string, add func(string, func(*lockWorld))) {
	rows := w.rows
	rows.of[i].state, rows.of[i].due = state, false
	after, _ := m.do("hand on", rows, i, 0)
	add(label, func(n *lockWorld) { n.rows, n.d[i].asked = after, 0 })
}

// outside is what becomes of requests and rollouts.
func (m *lockModel) outside(w lockWorld, i int, add func(string, func(*lockWorld))) {
	name, d := [...]string{"D1", "D2"}[i], w.d[i]
	for token := uint8(1); token <= maxToken; token++ {
		if d.flying&(1<<token) == 0 {
			continue
		}
		gone := func(n *lockWorld) { n.d[i].flying &^= 1 << token }
		add(fmt.Sprintf("%s: its request with token %d is lost", name, token), gone)
		refused := m.rules.ClusterFences && token < w.floor || m.rules.OneAtATime && w.d[1-i].rollout == 1
		if !refused && d.rollout == 0 {
			add(fmt.Sprintf("%s: begins with token %d", name, token), func(n *lockWorld) {
				gone(n)
				n.d[i].rollout = 1
				n.back = n.back || token <= n.last
				n.last, n.floor = token, max(n.floor, token+1)
			})
		}
	}
	if d.rollout == 1 {
		add(name+": its rollout ends", func(n *lockWorld) { n.d[i].rollout = 2 })
	}
}

// bad is what must never be.
func (w lockWorld) bad() string {
	open := func(i int) bool { return w.rows.of[i].state < dSucceeded }
	switch {
	case w.d[0].rollout == 1 && w.d[1].rollout == 1:
		return "two rollouts overlap"
	case w.back:
		return "a token went back"
	case w.rows.holder != 0 && !open(int(w.rows.holder)-1):
		return "the holder is over"
	case w.rows.holder == 0 && (open(0) || open(1)):
		return "somebody is open, and nobody holds the environment"
	}
	for i := range w.d {
		if w.rows.of[i].state == dFailed && w.d[i].rollout != 0 {
			return "failed, and it happened"
		}
		if w.rows.of[i].state > dQueued && open(i) && int(w.rows.holder) != i+1 {
			return "sent without the lock"
		}
	}
	return ""
}

// rests reports whether it may stay like this for ever.
func (w lockWorld) rests() bool {
	return w.rows.of[0].state >= dSucceeded && w.rows.of[1].state >= dSucceeded
}

// explore visits every reachable state, breadth first, and returns the shortest way to a bad one, or to one with no way on.
func (m *lockModel) explore() (states int, violation string, trace []string) {
	type from struct {
		parent int
		label  string
	}
	all, via := []lockWorld{m.begin()}, []from{{-1, ""}}
	known := map[lockWorld]bool{all[0]: true}
	for i := 0; i < len(all); i++ {
		next := m.next(all[i])
		if violation = all[i].bad(); m.only != "" && violation != m.only {
			violation = "" // what else goes wrong may come first
		}
		if violation == "" && m.only == "" && len(next) == 0 && !all[i].rests() {
			violation = "stuck"
		}
		if violation != "" {
			for at := i; via[at].parent >= 0; at = via[at].parent {
				trace = append(trace, via[at].label)
			}
			slices.Reverse(trace)
			return len(all), violation, trace
		}
		for _, n := range next {
			if !known[n.to] {
				known[n.to] = true
				all, via = append(all, n.to), append(via, from{i, n.label})
			}
		}
	}
	return len(all), "", nil
}

func TestTheLockHolds(t *testing.T) {
	m := newLockModel(t, everyLockRule)
	m.inside(func() {
		states, violation, trace := m.explore()
		t.Logf("%d states, %d statements", states, m.asked)
		if violation != "" {
			t.Errorf("%s\n%s", violation, strings.Join(trace, "\n"))
		}
		if states < 1000 {
			t.Errorf("%d states: the model does next to nothing", states)
		}
	})
}

// One row a rule: without it something goes wrong, and this.
func TestEveryRuleOfTheLockIsNeeded(t *testing.T) {
	for _, c := range []struct {
		without string
		drop    func(*lockRules)
		want    string
	}{
		{"CloseRaisesFloor", func(r *lockRules) { r.CloseRaisesFloor = false }, "failed, and it happened"},
		{"NotFoundKeeps", func(r *lockRules) { r.NotFoundKeeps = false }, "failed, and it happened"},
		{"PersonNeedsClose", func(r *lockRules) { r.PersonNeedsClose = false }, "failed, and it happened"},
		{"ClusterFences", func(r *lockRules) { r.ClusterFences = false }, "failed, and it happened"},
		{"OneAtATime, and a person who does not wait for a close", func(r *lockRules) { r.OneAtATime, r.PersonNeedsClose = false, false }, "two rollouts overlap"},
		{"HolderDraws", func(r *lockRules) { r.HolderDraws = false }, "sent without the lock"},
	} {
		t.Run("without "+c.without, func(t *testing.T) {
			rules := everyLockRule
			c.drop(&rules)
			m := newLockModel(t, rules)
			m.only = c.want
			m.inside(func() {
				states, violation, trace := m.explore()
				t.Logf("%d states: %q", states, trace)
				if violation != c.want {
					t.Errorf("got %q, want %q", violation, c.want)
				}
			})
		})
	}
}

// inside runs fn with the model's rows in a transaction that is never committed.
func (m *lockModel) inside(fn func()) {
	nothingIsKept := errors.New("nothing is kept")
	err := m.db.InTx(m.t.Context(), func(tx database.Tx) error {
		m.tx = tx
		m.prepare()
		fn()
		return nothingIsKept
	})
	if !errors.Is(err, nothingIsKept) {
		m.t.Error(err)
	}
}
