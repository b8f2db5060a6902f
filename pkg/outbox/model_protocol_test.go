package outbox

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/idempotency"
)

// protocol is the model: the real statements and decisions among two workers, a client, a person, and the world.
type protocol struct {
	rules  rules
	assume assumptions
	target Target
	rows   *rows
	keys   [2]string // the effect key in each life of the claim, whose operations have ids of their own
	only   string    // the one violation that is looked for; empty: any
}

func (m *protocol) init() world        { return world{} }
func (m *protocol) rests(w world) bool { return w.rests() }
func (m *protocol) bad(w world) string {
	if v := w.judge(); m.only == "" || v == m.only {
		return v
	}
	return ""
}

// becomes puts a row in place, and remembers what clients see of it.
func (w *world) becomes(r row) {
	w.row = r
	if r.state.final() {
		w.told |= 1 << r.state
	}
}

func (m *protocol) next(w world) (all []transition[world]) {
	add := func(label string, do func(*world)) {
		n := w
		do(&n)
		if n.workers[1].before(n.workers[0]) {
			n.workers[0], n.workers[1] = n.workers[1], n.workers[0]
		}
		if n != w {
			all = append(all, transition[world]{label, n})
		}
	}
	if !w.claimed {
		add("client: claims", func(n *world) {
			n.claimed, n.row = true, row{state: isQueued, due: true}
			if m.assume.approval {
				n.row = row{state: isAwaiting, consent: consent{answer: isAsked, until: ahead, expires: ahead}}
			}
			if m.assume.deadline {
				n.row.deadline = ahead
			}
		})
	} else {
		m.watcher(w, add)
		m.client(w, add)
		m.approver(w, add)
		m.person(w, add)
		m.hooks(w, add)
		for i, q := range w.workers {
			if q.at == idle {
				m.pickUp(w, i, add)
			}
		}
	}
	for i, q := range w.workers {
		if q.at != idle {
			m.goOn(w, i, add)
		}
	}
	m.outside(w, add)
	return all
}

// client cancels, once. (*Outbox).Cancel in statements.
func (m *protocol) client(w world, add func(string, func(*world))) {
	if w.cancels > 0 || w.row.state.final() {
		return
	}
	statement := cancel
	if !m.rules.DoubtNoCancel {
		statement = func(tx database.Tx, e Effect) (bool, error) {
			return change(tx, e, tx.Where("state = ?", idempotency.Queued), ended(idempotency.Canceled, nil))
		}
	}
	after, changed := m.rows.statement("cancel", w.row, statement)
	switch {
	case changed:
	case m.target.Ability.Close:
		after, _ = m.rows.statement("ask to cancel", w.row, askToCancel)
		after, _ = m.rows.statement("ask now", after, askNow)
	default:
		return
	}
	add("client: cancels", func(n *world) { n.cancels++; n.becomes(after) })
}

// watcher notices that the deadline has passed: (*Outbox).passDeadline in statements.
func (m *protocol) watcher(w world, add func(string, func(*world))) {
	if w.row.deadline != passed || w.row.overdue || w.row.state.final() || !m.rules.DeadlineNoticed {
		return
	}
	after := w.row
	if after.state == isQueued {
		target := m.sending()
		after, _ = m.settle("past its deadline", after, after, func(e Effect) step { return target.afterLastSend(e, m.rows.tx.Now) })
	}
	after, noted := m.rows.statement("overdue", after, overdue)
	after.review = after.review || noted
	add("watcher: notices that the deadline has passed", func(n *world) { n.becomes(after) })
}

// person decides what waits for one, rightly: nothing can happen any more that has not.
func (m *protocol) person(w world, add func(string, func(*world))) {
	if w.row.state != isUnknown || !w.row.review || !w.quiet() {
		return
	}
	state := idempotency.Failed
	if w.effects > 0 {
		state = idempotency.Succeeded
	}
	after, changed := m.rows.statement("decide "+string(state), w.row, func(tx database.Tx, e Effect) (bool, error) { return decide(tx, e, state, "D-1") })
	if changed {
		add("person: decides that it has "+string(state), func(n *world) { n.becomes(after) })
	}
}

// hooks come at any time, any number of times.
func (m *protocol) hooks(w world, add func(string, func(*world))) {
	if w.tellsYes {
		add("webhook: it happened", func(n *world) { m.happens(n, n.row) })
	}
	if w.tellsNo && !m.rules.HintOnly {
		after, _ := m.rows.statement("verdict", w.row, verdict)
		add("webhook: an attempt failed → failed", func(n *world) { n.becomes(after) })
	}
}

// happens settles positive evidence of a worker, or of a webhook.
func (m *protocol) happens(n *world, view row) {
	choose := func(e Effect) step {
		return m.target.afterSend(e, Evidence{Finding: Confirmed, Reference: "D-1"}, m.rows.tx.Now)
	}
	switch {
	case !m.rules.PositiveUnfenced:
		choose = func(e Effect) step {
			return step{change: func(tx database.Tx) (bool, error) {
				return change(tx, e, tx.Where("state IN ?", []idempotency.State{idempotency.Running, idempotency.Unknown}), ended(idempotency.Succeeded, nil))
			}}
		}
	case !m.rules.FinalStays:
		choose = func(e Effect) step {
			return step{change: func(tx database.Tx) (bool, error) {
				return update(tx, tx.Where("account_id = ? AND id = ?", e.AccountID, e.ID), ended(idempotency.Succeeded, nil))
			}}
		}
	}
	after, changed := m.settle("happened", n.row, view, choose)
	n.becomes(after)
	n.wasted = n.wasted || !changed && !after.state.final()
}

// settle is (*Outbox).settle in statements: the effect as it is now if it is still the worker's, the step, its statement.
func (m *protocol) settle(what string, known, view row, choose func(e Effect) step) (row, bool) {
	if known.fence == view.fence && known.lease != never == (view.lease != never) {
		view = known // as current has it
	}
	s := choose(m.rows.effect(view))
	if s.change == nil {
		return known, false
	}
	return m.rows.run(what, known, view, s)
}

// pickUp is what an idle worker may begin: a send, giving up, or a look.
func (m *protocol) pickUp(w world, i int, add func(string, func(*world))) {
	if w.row.state == isQueued {
		m.pickUpSend(w, i, add)
	}
	if w.row.state != isRunning && w.row.state != isUnknown {
		return
	}
	if w.row.review && int(w.row.asks) > m.target.MaxAsks {
		return // looks go on while a person is asked; one stands for all
	}
	kind := askKinds[m.target.howToAsk(m.rows.effect(w.row), m.rows.tx.Now)]
	take := func(tx database.Tx, e Effect) (bool, error) {
		return takeToAsk(tx, e, m.target, leaseName(w.row.fence+1))
	}
	if !m.rules.ReconcileFenced {
		take = func(tx database.Tx, e Effect) (bool, error) {
			open := tx.Where("state IN ? AND (lease_until IS NULL OR lease_until <= ?)", []idempotency.State{idempotency.Running, idempotency.Unknown}, tx.Now)
			return change(tx, e, open, map[string]any{"state": idempotency.Unknown})
		}
	}
	if after, changed := m.rows.statement("take to ask", w.row, take); changed {
		add("worker: takes to ask", func(n *world) {
			n.becomes(after)
			n.workers[i] = worker{at: asking_, view: after, life: n.life, kind: kind}
			if kind == askNobody {
				n.workers[i].at, n.workers[i].answer = heard, notThere
			}
		})
	}
}

func (m *protocol) pickUpSend(w world, i int, add func(string, func(*world))) {
	target := m.sending()
	after, changed := m.takesToSend(w.row, target)
	switch {
	case changed && m.rules.MarkFirst:
		add("worker: takes to send", func(n *world) {
			n.tookLate = n.row.deadline == passed
			n.tookUnasked = !n.row.consent.given()
			n.becomes(after)
			n.workers[i] = worker{at: taken, view: after, life: n.life}
		})
	case changed:
		add("worker: begins to send without a take", func(n *world) { n.workers[i] = worker{at: taken, view: after, life: n.life} })
	case w.row.consent.answer != notNeeded && target.maySend(m.rows.effect(w.row), m.rows.tx.Now):
		if !m.rules.ApprovalEnds {
			return
		}
		after, changed := m.settle("after the approval", w.row, w.row, func(e Effect) step { return target.afterApproval(e, m.rows.tx.Now) })
		if changed {
			add("worker: the approval does not hold", func(n *world) { n.becomes(after) })
		}
	case m.rules.EndInReview:
		after, changed := m.settle("after the last send", w.row, w.row, func(e Effect) step { return target.afterLastSend(e, m.rows.tx.Now) })
		if changed {
			add("worker: may send no more", func(n *world) { n.becomes(after) })
		}
	}
}

func (m *protocol) takesToSend(r row, t Target) (row, bool) {
	what := "take to send, of " + strconv.Itoa(t.MaxAttempts)
	if t.Ability.Key {
		what += ", key window " + t.Ability.KeyWindow.String()
	}
	take := func(tx database.Tx, e Effect) (bool, error) { return m.takesAsShown(tx, e, t, r) }
	if !m.rules.WorldInTake {
		what += ", into any world"
	}
	if !m.rules.DeadlineInTake {
		what += ", whatever its deadline"
		inTime := take
		take = func(tx database.Tx, e Effect) (changed bool, err error) {
			tx.Exec("UPDATE effects SET deadline = NULL")
			defer tx.Exec("UPDATE effects SET deadline = ?", e.Deadline)
			return inTime(tx, e)
		}
	}
	if !m.rules.ApprovalInTake {
		what += ", whatever was said to it"
		agreed := take
		take = func(tx database.Tx, e Effect) (changed bool, err error) {
			approval, until := e.ApprovalID, e.ApprovedUntil
			tx.Exec("UPDATE effects SET approval_id = ''")
			defer tx.Exec("UPDATE effects SET approval_id = ?, approved_until = ?", approval, until)
			e.ApprovalID, e.ApprovedUntil = "", nil
			return agreed(tx, e)
		}
	}
	return m.rows.statement(what, r, take)
}

// sending is the target as sends see it. It lies where a rule about sends is switched off.
func (m *protocol) sending() Target {
	t := m.target
	if !m.rules.SendWindow {
		t.Ability.KeyWindow = 1000 * time.Hour
	}
	if !m.rules.SendOnce {
		t.Ability.Key, t.Ability.KeyWindow = true, 1000*time.Hour
	}
	return t
}

// goOn is what a worker may do next.
func (m *protocol) goOn(w world, i int, add func(string, func(*world))) {
	q := w.workers[i]
	if w.kills < maxKills && !m.assume.nobodyDies {
		add("kill -9", func(n *world) { n.kills++; n.workers[i] = worker{} })
	}
	switch q.at {
	case taken:
		add("worker: sends", func(n *world) { n.workers[i].at = waiting; n.flying[q.life] |= 1 << q.view.fence })
		if w.failures < maxFailures {
			add("worker: finds no connection", func(n *world) { n.failures++; n.workers[i].at, n.workers[i].answer = answered, refuses })
		}
	case waiting:
		add("worker: gets no answer", func(n *world) { n.workers[i].at, n.workers[i].answer = answered, noAnswer })
	case asking_:
		add("worker: asks", func(n *world) { m.ask(n, i) })
		if w.failures < maxFailures {
			add("worker: asks, and gets no answer", func(n *world) { n.failures++; n.workers[i].at, n.workers[i].answer = heard, noAnswer })
		}
	case answered:
		m.settleSend(w, i, add)
	case heard:
		m.settleAsk(w, i, add)
	}
}

func (m *protocol) settleSend(w world, i int, add func(string, func(*world))) {
	findings := map[answerNo][]Finding{yes: {Confirmed}, declines: {Verdict}, refuses: {NotSent, Refused}, noAnswer: {Ambiguous}}
	for _, finding := range findings[w.workers[i].answer] {
		ev := m.target.Ability.believe(Evidence{Finding: finding, Reference: "D-1"})
		m.settles(w, i, ev, func(e Effect) step {
			inDoubt := ev.Finding == Refused && !e.onlyDoubt()
			if inDoubt && !m.rules.DoubtNoRefusal || ev.Finding == Verdict && !m.rules.VerdictUnfenced {
				return step{change: func(tx database.Tx) (bool, error) {
					return change(tx, e, tx.Where("state = ?", idempotency.Running), ended(idempotency.Failed, nil))
				}}
			}
			return m.sending().afterSend(e, ev, m.rows.tx.Now)
		}, add)
	}
}

func (m *protocol) settleAsk(w world, i int, add func(string, func(*world))) {
	q := w.workers[i]
	finding := map[answerNo]Finding{yes: Confirmed, notThere: NotFound, shutNow: Closed, noAnswer: Ambiguous}[q.answer]
	ev := Evidence{Finding: finding, Reference: "D-1"}
	m.settles(w, i, ev, func(e Effect) step {
		if finding == NotFound && !m.rules.NotFoundNoFail {
			return step{change: func(tx database.Tx) (bool, error) {
				return change(tx, e, tx.Where("state = ?", idempotency.Unknown), ended(idempotency.Failed, nil))
			}}
		}
		return m.sending().afterAsk(e, q.kind.kind(), ev, m.rows.tx.Now)
	}, add)
}

// settles lets a worker settle what it knows, and be idle.
func (m *protocol) settles(w world, i int, ev Evidence, choose func(e Effect) step, add func(string, func(*world))) {
	q := w.workers[i]
	label := "worker: settles " + string(ev.Finding)
	if kind := q.kind.kind(); kind != "" {
		label += " of " + kind
	}
	if !w.claimed || q.life != w.life { // its row is gone
		add(label+", of a claim that is gone", func(n *world) { n.workers[i] = worker{} })
		return
	}
	if ev.Finding == Confirmed {
		add(label, func(n *world) { n.workers[i] = worker{}; m.happens(n, q.view) })
		return
	}
	view := q.view
	if !m.rules.NegativeFenced && ev.Finding != Verdict {
		view = w.row // the fence is read again
	}
	known := w.row
	if !m.rules.MarkFirst && q.at == answered { // the mark comes after the send
		known, _ = m.takesToSend(w.row, m.target)
	}
	after, _ := m.settle(label, known, view, choose)
	add(label, func(n *world) { n.workers[i] = worker{}; n.becomes(after) })
}

// newProtocol makes a model.
func newProtocol(t *testing.T, known answers, ability Ability, r rules, a assumptions) *protocol {
	t.Helper()
	target := Target{Name: "desk", Ability: ability, Timeout: time.Second, Lease: time.Minute, MaxAttempts: 2, MaxAsks: 1, AskEvery: time.Second}
	m := &protocol{rules: r, assume: a, rows: &rows{t: t, target: target, answers: known}}
	m.target = target
	if a.approval {
		m.target.World = m.rows.world
	}
	for life := range m.keys {
		of := idempotency.Key("k-1")
		if !r.KeyFromKey {
			of = idempotency.Key(fmt.Sprintf("op_%d", life))
		}
		m.keys[life] = Key("einmal", "tickets", "acme", of, "mirror")
	}
	return m
}

// explore searches the model over a database.
func (m *protocol) explore(db *database.DB) (r result) {
	m.inside(db, func() { r = explore[world](m) })
	return r
}

// inside runs fn with the model's rows in a transaction that is never committed.
func (m *protocol) inside(db *database.DB, fn func()) {
	nothingIsKept := errors.New("nothing is kept")
	err := db.InTx(m.rows.t.Context(), func(tx database.Tx) error {
		m.rows.open(tx)
		defer m.rows.close()
		fn()
		return nothingIsKept
	})
	if !errors.Is(err, nothingIsKept) {
		m.rows.t.Error(err)
	}
}

func modelDB(t *testing.T) *database.DB {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	return dbtest.OpenWith(t, database.SQLite, database.Options{Clock: func() time.Time { return now }})
}
