package outbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// TestTable holds docs/protocol.md, "The effect row", against the statements: from which rows each applies, and what it sets. Each
// is tried on every state, under the fence that the row has and under the one before.
func TestTable(t *testing.T) {
	t.Parallel()
	free := func(r row) bool { return r.lease != ahead }
	open := func(r row) bool { return r.state == isQueued || r.state == isRunning || r.state == isUnknown }
	asked := func(r row) bool { return r.state == isUnknown || r.state == isRunning && r.accepted }
	release := func(r *row) { r.lease = never }
	end := func(state stateNo) func(*row) {
		return func(r *row) { r.state, r.doubt, r.due, r.lease = state, 0, false, never }
	}
	named := func(r *row) { r.reference = true }
	both := func(first, second func(*row)) func(*row) { return func(r *row) { first(r); second(r) } }
	to := func(state stateNo) func(*row) {
		return func(r *row) { r.state, r.due = state, true; release(r) }
	}
	taken := func(r *row) { r.lease, r.due = ahead, true; r.fence++ }

	keyedDesk := Target{Ability: keyed, Timeout: time.Second, Lease: time.Minute, MaxAttempts: 2, AskEvery: time.Second}
	plainDesk := keyedDesk
	plainDesk.Ability = lookedUp
	sent := func(r *row) {
		r.state = isRunning
		taken(r)
		if r.doubt == 0 {
			r.doubt = r.fence
		}
		if r.window == never {
			r.window = ahead
		}
		r.attempts, r.asks = r.attempts+1, 0
	}
	sendable := func(r row) bool {
		return r.state == isQueued && r.due && r.attempts < 2 && !r.cancel && r.window != passed && r.deadline != passed
	}

	db, known := modelDB(t), answers{}
	for _, line := range []struct {
		name      string
		statement func(tx database.Tx, e Effect) (bool, error)
		anyFence  bool
		from      func(r row) bool
		sets      func(r *row)
	}{
		{
			"take to send, with keys", func(tx database.Tx, e Effect) (bool, error) {
				return takeToSend(tx, e, keyedDesk, leaseName(uint8(e.Fence)+1))
			},
			false, sendable, sent,
		},
		{
			"take to send, without", func(tx database.Tx, e Effect) (bool, error) {
				return takeToSend(tx, e, plainDesk, leaseName(uint8(e.Fence)+1))
			},
			false, func(r row) bool {
				return r.doubt == 0 && r.state == isQueued && r.due && r.attempts < 2 && !r.cancel && r.deadline != passed
			}, sent,
		},
		{
			"not sent", func(tx database.Tx, e Effect) (bool, error) { return notSent(tx, e, tx.Now) },
			false, func(r row) bool { return r.state == isRunning && r.doubt == r.fence }, both(to(isQueued), func(r *row) { r.doubt = 0 }),
		},
		{
			"refused", refused,
			false, func(r row) bool { return r.state == isRunning && r.doubt == r.fence }, end(isFailed),
		},
		{
			"not sent, with an earlier send in doubt", func(tx database.Tx, e Effect) (bool, error) { return notSentInDoubt(tx, e, idempotency.Queued, tx.Now) },
			false, func(r row) bool { return r.state == isRunning && r.doubt != 0 && r.doubt < r.fence }, to(isQueued),
		},
		{"verdict", verdict, true, open, end(isFailed)},
		{
			"ambiguous", func(tx database.Tx, e Effect) (bool, error) { return ambiguous(tx, e, tx.Now) },
			false, func(r row) bool { return r.state == isRunning }, to(isUnknown),
		},
		{
			"accepted", func(tx database.Tx, e Effect) (bool, error) { return accepted(tx, e, "D-1", tx.Now) },
			false, func(r row) bool { return r.state == isRunning || r.state == isUnknown },
			both(to(isRunning), func(r *row) { r.accepted, r.reference, r.asks = true, true, 0 }),
		},
		{
			"reference learned", func(tx database.Tx, e Effect) (bool, error) { return learned(tx, e, "D-1") },
			false, func(r row) bool { return r.state == isRunning }, named,
		},
		{
			"reference learned, another than is known", func(tx database.Tx, e Effect) (bool, error) { return learned(tx, e, "D-2") },
			false, func(r row) bool { return r.state == isRunning && !r.reference }, named,
		},
		{
			"happened", func(tx database.Tx, e Effect) (bool, error) { return happened(tx, e, "D-1") },
			true, open, both(end(isSucceeded), named),
		},
		{"stopped", stopped, true, open, end(isCanceled)},
		{"turn", turn, false, func(r row) bool { return r.state == isQueued && !r.due }, func(r *row) { r.due = true }},
		{
			"take to ask", func(tx database.Tx, e Effect) (bool, error) {
				return takeToAsk(tx, e, plainDesk, leaseName(uint8(e.Fence)+1))
			},
			false, func(r row) bool { return (r.state == isRunning || r.state == isUnknown) && r.due && free(r) },
			both(taken, func(r *row) {
				r.asks++
				if !r.accepted {
					r.state = isUnknown
				}
			}),
		},
		{
			"closed, failed", func(tx database.Tx, e Effect) (bool, error) { return closed(tx, e, idempotency.Failed, tx.Now) },
			false, func(r row) bool { return asked(r) && !r.cancel }, end(isFailed),
		},
		{
			"closed, canceled", func(tx database.Tx, e Effect) (bool, error) { return closed(tx, e, idempotency.Canceled, tx.Now) },
			false, asked, end(isCanceled),
		},
		{
			"closed, queued", func(tx database.Tx, e Effect) (bool, error) { return closed(tx, e, idempotency.Queued, tx.Now) },
			false, func(r row) bool { return asked(r) && !r.cancel }, both(to(isQueued), func(r *row) { r.doubt = 0 }),
		},
		{
			"not found, with keys", func(tx database.Tx, e Effect) (bool, error) { return requeue(tx, e, tx.Now) },
			false, func(r row) bool { return r.state == isUnknown }, to(isQueued),
		},
		{
			"nothing learned", func(tx database.Tx, e Effect) (bool, error) { return askLater(tx, e, tx.Now) },
			false, asked, func(r *row) { r.due = true; release(r) },
		},
		{
			"left to a person", unknownForGood,
			false, func(r row) bool { return r.state == isRunning || r.state == isUnknown }, func(r *row) { r.state, r.due = isUnknown, false; release(r) },
		},
		{
			"shown something else", func(tx database.Tx, e Effect) (bool, error) { return different(tx, e, "50") },
			false, func(r row) bool { return r.state == isRunning || r.state == isUnknown }, func(r *row) { r.state, r.due = isUnknown, false; release(r) },
		},
		{
			"overdue", overdue, true,
			func(r row) bool {
				return (r.state == isRunning || r.state == isUnknown) && r.deadline == passed && !r.overdue
			}, func(r *row) { r.overdue = true },
		},
		{"cancel", cancel, false, func(r row) bool { return r.state == isAwaiting || r.state == isQueued && r.doubt == 0 }, both(end(isCanceled), func(r *row) { r.cancel = true })},
		{"ask to cancel", askToCancel, true, open, func(r *row) { r.cancel = true }},
		{"sends exhausted", sendsExhausted, false, func(r row) bool { return r.state == isQueued && r.doubt == 0 && !r.cancel }, end(isFailed)},
		{"no more sends", noMoreSends, false, func(r row) bool { return r.state == isQueued && r.doubt != 0 }, to(isUnknown)},
		{
			"a person decides", func(tx database.Tx, e Effect) (bool, error) { return decide(tx, e, idempotency.Failed, "D-1") },
			false, func(r row) bool { return r.state == isUnknown && free(r) }, both(end(isFailed), func(r *row) { r.fence++; r.reference = true }),
		},
		{
			"ask now", askNow,
			false, func(r row) bool { return (r.state == isRunning || r.state == isUnknown) && free(r) }, func(r *row) { r.due = true },
		},
		{
			"ask now, beside a send that has shown the key to be another's", func(tx database.Tx, e Effect) (bool, error) {
				defer tx.Exec("DELETE FROM attempts")
				ended := Attempt{AccountID: e.AccountID, ID: "try_reused", OperationID: e.OperationID, EffectID: e.ID, Kind: kindSend, StartedAt: tx.Now, Outcome: Reused}
				if err := tx.Create(&ended).Error; err != nil {
					return false, err
				}
				return askNow(tx, e)
			},
			false, func(row) bool { return false }, nil,
		},
		{
			"the key is another's", reused, true, open,
			func(r *row) { r.state, r.due, r.lease = isUnknown, false, never; r.fence++ },
		},
	} {
		t.Run(line.name, func(t *testing.T) {
			m := newProtocol(t, known, keyed, allRules, fair)
			m.inside(db, func() {
				for _, before := range tableRows() {
					given := []row{before}
					if before.lease == never {
						given = append(given, before)
						given[1].fence--
					}
					for _, given := range given {
						e := m.rows.effect(given)
						after, changed := m.rows.run("table, "+line.name, before, given, step{change: func(tx database.Tx) (bool, error) { return line.statement(tx, e) }})
						want, applies := before, line.from(before) && (line.anyFence || given == before)
						if applies {
							line.sets(&want)
						}
						if diff := cmp.Diff(want, after, cmp.AllowUnexported(row{}, consent{})); diff != "" || changed != applies {
							t.Fatalf("given fence %d, on %+v: changed %v, %s", given.fence, before, changed, diff)
						}
					}
				}
			})
		})
	}
}

// tableRows are rows with fence 3 that differ in what the table asks for, one thing at a time.
func tableRows() (all []row) {
	for state := range stateNames {
		plain := row{state: stateNo(state), fence: 3, doubt: 3, due: true, attempts: 1, asks: 1}
		all = append(all, plain)
		for _, change := range []func(r *row){
			func(r *row) { r.doubt = 0 }, func(r *row) { r.doubt = 1 }, func(r *row) { r.lease = ahead }, func(r *row) { r.lease = passed },
			func(r *row) { r.due = false }, func(r *row) { r.attempts = 2 }, func(r *row) { r.cancel = true }, func(r *row) { r.accepted = true },
			func(r *row) { r.window = ahead }, func(r *row) { r.window = passed }, func(r *row) { r.reference = true },
			func(r *row) { r.deadline = ahead }, func(r *row) { r.deadline = passed }, func(r *row) { r.deadline, r.overdue = passed, true },
		} {
			r := plain
			change(&r)
			all = append(all, r)
			if r.state == isQueued { // where most depends on whether a send is in doubt
				r.doubt = 0
				all = append(all, r)
			}
		}
	}
	return all
}
