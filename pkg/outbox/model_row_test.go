package outbox

import (
	"database/sql"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// stateNo is a state in a byte.
type stateNo uint8

var stateNames = []idempotency.State{
	idempotency.AwaitingApproval, idempotency.Queued, idempotency.Running, idempotency.Unknown,
	idempotency.Succeeded, idempotency.Failed, idempotency.Canceled,
}

const (
	isAwaiting stateNo = iota
	isQueued
	isRunning
	isUnknown
	isSucceeded
	isFailed
	isCanceled
)

func (n stateNo) final() bool    { return n >= isSucceeded }
func (n stateNo) String() string { return string(stateNames[n]) }

// when is all that the statements see of a time.
type when uint8

const (
	never  when = iota
	ahead       // a lease that lives, a key window that is open
	passed      // one that has ended
)

// row is a row of effects as far as the protocol looks at it. There is one clock, which stands still: time passes by turning what
// is ahead into what has passed.
type row struct {
	state          stateNo
	fence, doubt   uint8 // doubt 0: none
	attempts, asks uint8
	window, lease  when // of the key, since the first send; a lease is held under the name of its fence
	due            bool // now or later, which is the same to a protocol that may not rely on when
	deadline       when // never: it has none
	overdue        bool // it was noticed that its deadline has passed
	consent        consent
	cancel, review bool // asked for
	accepted       bool
	reference      bool
}

// number packs a row, to put processes in an order.
func (r row) number() (n uint64) {
	for _, part := range []uint8{
		uint8(r.state), r.fence, r.doubt, r.attempts, r.asks, uint8(r.window)<<2 | uint8(r.lease), uint8(r.deadline)<<1 | bit(r.overdue), bit(r.due), bit(r.cancel)<<3 | bit(r.review)<<2 | bit(r.accepted)<<1 | bit(r.reference),
		uint8(r.consent.answer)<<1 | bit(r.consent.moved), uint8(r.consent.until)<<2 | uint8(r.consent.expires),
	} {
		n = n<<4 | uint64(part)
	}
	return n
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// rows runs the real statements on a real row.
type rows struct {
	t           *testing.T
	tx          database.Tx // one transaction for all: it is never committed
	target      Target
	write, read *sql.Stmt // prepared, since parsing takes most of the time of so small a statement
	stored      row       // what is in the database, if it was written there
	moved       bool      // the world, in what is stored
	asked       int       // statements that had to run
	answers     answers
}

// answers is what statements have made of rows: each runs once for each row that it meets, in all models that share these.
type answers map[question]answer

// question is all that the result of a statement depends on: beside the row, the fence that it is given and under which name, and
// what the step says of it.
type question struct {
	statement string
	to        idempotency.State
	before    row
	fence     uint8
	held      bool
}

type answer struct {
	after   row
	changed bool
}

// run is what a step makes of the row before. It was chosen for the effect as given: as it was read, maybe long ago.
func (r *rows) run(what string, before, given row, s step) (row, bool) {
	return r.runNamed(what+" "+nameOf(s.change), before, given, s)
}

func (r *rows) runNamed(name string, before, given row, s step) (row, bool) {
	q := question{name, s.to, before, given.fence, given.lease != never}
	a, ok := r.answers[q]
	if !ok {
		a = r.ask(q, s)
		r.answers[q] = a
	}
	a.after.review = a.after.review || a.changed && s.askPerson // which askPerson notes
	return a.after, a.changed
}

func (r *rows) ask(q question, s step) answer {
	r.asked++
	if r.stored != q.before {
		r.put(q.before)
		r.stored = q.before
	}
	changed, err := s.change(r.tx)
	if err != nil {
		r.t.Fatalf("%s: %v", q.statement, err)
	}
	after := r.get()
	if !changed && after != q.before {
		r.t.Fatalf("%s says that it changed nothing: %+v, then %+v", q.statement, q.before, after)
	}
	if changed {
		r.stored = row{} // its times are the statement's
	}
	return answer{after, changed}
}

// nameOf tells one statement from another.
func nameOf(f any) string { return runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name() }

// statement runs one on the row as it is.
func (r *rows) statement(what string, before row, change func(tx database.Tx, e Effect) (bool, error)) (row, bool) {
	e := r.effect(before)
	return r.runNamed(what+" "+nameOf(change), before, before, step{change: func(tx database.Tx) (bool, error) { return change(tx, e) }})
}

const modelEffect = "eff_model"

// effect is a row with times in it.
func (r *rows) effect(of row) Effect {
	now := r.tx.Now
	e := Effect{
		AccountID: "acme", ID: modelEffect, OperationID: "op_model", Target: "desk", Command: []byte{},
		State: stateNames[of.state], Fence: int64(of.fence), Attempts: int(of.attempts), Asks: int(of.asks),
	}
	if of.doubt > 0 {
		doubt := int64(of.doubt)
		e.Doubt = &doubt
	}
	at := func(w when, ifAhead, ifPassed time.Time) *time.Time {
		switch w {
		case ahead:
			return &ifAhead
		case passed:
			return &ifPassed
		}
		return nil
	}
	e.FirstSentAt = at(of.window, now, now.Add(-r.target.Ability.KeyWindow))
	e.LeaseUntil = at(of.lease, now.Add(r.target.Lease), now)
	e.Deadline = at(of.deadline, now.Add(r.target.Lease), now)
	if of.overdue {
		e.OverdueAt = &now
	}
	if of.lease != never {
		e.LeasedBy = leaseName(of.fence)
	}
	if of.due {
		e.NextAt = &now
	}
	if of.cancel {
		e.CancelAskedAt = &now
	}
	if of.consent.answer != notNeeded {
		e.ApprovalID = modelApproval
		e.ApprovedUntil = at(of.consent.until, now.Add(r.target.Lease), now)
	}
	if of.accepted {
		e.AcceptedAt = &now
	}
	if of.review {
		e.ReviewID = "rev_model"
	}
	if of.reference {
		e.Reference = "D-1"
	}
	return e
}

// leaseName is under which an effect is taken; the fence makes it unique.
func leaseName(fence uint8) string { return "try_" + strconv.Itoa(int(fence)) }

// open puts one effect into the transaction, in which everything happens.
func (r *rows) open(tx database.Tx) {
	r.tx, r.stored = tx, row{}
	e := r.effect(row{state: isQueued})
	err := errors.Join(tx.Create(&e).Error, openApproval(tx))
	prepare := func(text string) (statement *sql.Stmt) {
		if err == nil {
			statement, err = tx.Statement.ConnPool.PrepareContext(r.t.Context(), text)
		}
		return statement
	}
	r.write = prepare(`UPDATE effects SET state = ?, fence = ?, doubt = ?, attempts = ?, asks = ?, first_sent_at = ?, lease_until = ?, leased_by = ?,
		next_at = ?, cancel_asked_at = ?, accepted_at = ?, review_id = ?, reference = ?, deadline = ?, overdue_at = ?,
		approval_id = ?, approved_until = ?`)
	r.read = prepare(`SELECT state, fence, doubt, attempts, asks, first_sent_at, lease_until, leased_by, next_at, cancel_asked_at, accepted_at, review_id, reference,
		deadline, overdue_at, approval_id, approved_until FROM effects`)
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rows) close() {
	r.write.Close()
	r.read.Close()
}

func (r *rows) put(of row) {
	e := r.effect(of)
	_, err := r.write.ExecContext(r.tx.Statement.Context, string(e.State), e.Fence, e.Doubt, e.Attempts, e.Asks, e.FirstSentAt, e.LeaseUntil, e.LeasedBy,
		e.NextAt, e.CancelAskedAt, e.AcceptedAt, e.ReviewID, e.Reference, e.Deadline, e.OverdueAt, e.ApprovalID, e.ApprovedUntil)
	if err == nil {
		err = r.putConsent(of.consent)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rows) get() row {
	var e Effect
	err := r.read.QueryRowContext(r.tx.Statement.Context).Scan(&e.State, &e.Fence, &e.Doubt, &e.Attempts, &e.Asks, &e.FirstSentAt, &e.LeaseUntil, &e.LeasedBy,
		&e.NextAt, &e.CancelAskedAt, &e.AcceptedAt, &e.ReviewID, &e.Reference, &e.Deadline, &e.OverdueAt,
		&e.ApprovalID, &e.ApprovedUntil)
	if err != nil {
		r.t.Fatal(err)
	}
	of := row{
		state: stateNo(slices.Index(stateNames, e.State)), fence: uint8(e.Fence), attempts: uint8(e.Attempts), asks: uint8(e.Asks),
		due: e.NextAt != nil, cancel: e.CancelAskedAt != nil, accepted: e.AcceptedAt != nil, review: e.ReviewID != "", reference: e.Reference != "",
		overdue: e.OverdueAt != nil,
	}
	if e.Doubt != nil {
		of.doubt = uint8(*e.Doubt)
	}
	is := func(at *time.Time, isAhead bool) when {
		switch {
		case at == nil:
			return never
		case isAhead:
			return ahead
		}
		return passed
	}
	of.window = is(e.FirstSentAt, e.FirstSentAt != nil && e.FirstSentAt.Equal(r.tx.Now))
	of.lease = is(e.LeaseUntil, e.LeaseUntil != nil && e.LeaseUntil.After(r.tx.Now))
	of.deadline = is(e.Deadline, e.Deadline != nil && e.Deadline.After(r.tx.Now))
	if e.ApprovalID != "" {
		of.consent = r.getConsent()
		of.consent.until = is(e.ApprovedUntil, e.ApprovedUntil.After(r.tx.Now))
	}
	if (of.lease != never) != (e.LeasedBy != "") {
		r.t.Fatalf("a lease is neither there nor not: %+v", e)
	}
	return of
}
