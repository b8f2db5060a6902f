package payments_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
)

// ids are what a healthy database has: a payment that was captured and refunded in part, and one that is authorized.
type ids struct {
	captured, authorized, canceled payment
	refund                         refund
	captureOp                      string
}

// another is a further row like one that there is, with other values in some columns.
const anotherPayment = `INSERT INTO payments SELECT account_id, ?, order_id, amount_minor, currency, state, captured_minor, refund_reserved_minor, refunded_minor, refunds,
	reference, operation_id, open_operation_id, created_at, updated_at FROM payments WHERE id = ?`

func TestFsckSeesEachOfItsViolations(t *testing.T) {
	type found = []string
	cases := map[string]struct {
		damage func(exec func(string, ...any), id ids)
		want   func(id ids) found
	}{
		"a database that is healthy": {func(func(string, ...any), ids) {}, func(ids) found { return nil }},
		"a second live payment of an order": {
			func(exec func(string, ...any), id ids) { exec(anotherPayment, "pay_zzz", id.authorized.ID) },
			func(id ids) found {
				return found{"a payment and its authorising agree: pay_zzz", "an order has one live payment at most: " + id.authorized.ID}
			},
		},
		"an order that says something else": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE orders SET amount_minor = 1 WHERE id = 'captured'")
			},
			func(id ids) found { return found{"a payment says what its order says: " + id.captured.ID} },
		},
		"an order that could still be changed": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE orders SET frozen = ? WHERE id = 'captured'", false)
			},
			func(id ids) found { return found{"a payment says what its order says: " + id.captured.ID} },
		},
		"an order that is lost": {
			func(exec func(string, ...any), id ids) { exec("DELETE FROM orders WHERE id = 'captured'") },
			func(id ids) found { return found{"a payment says what its order says: " + id.captured.ID} },
		},
		"a payment that waits for an authorising that has ended": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE payments SET state = 'pending' WHERE id = ?", id.authorized.ID)
			},
			func(id ids) found { return found{"a payment and its authorising agree: " + id.authorized.ID} },
		},
		"a payment that has failed although it was authorized": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE payments SET state = 'failed' WHERE id = ?", id.authorized.ID)
			},
			func(id ids) found { return found{"a payment and its authorising agree: " + id.authorized.ID} },
		},
		"a payment that is lost": {
			func(exec func(string, ...any), id ids) { exec("DELETE FROM payments WHERE id = ?", id.authorized.ID) },
			func(id ids) found { return found{"every authorising has its payment: " + id.authorized.OperationID} },
		},
		"a payment that waits for a capture that has ended": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE payments SET open_operation_id = ? WHERE id = ?", id.captureOp, id.authorized.ID)
			},
			func(id ids) found {
				return found{"what is under way at a payment is a capture or cancel of it: " + id.authorized.ID}
			},
		},
		"a capture that is open and holds nothing": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE operations SET state = 'queued', response_status = 0, response_body = NULL, completed_at = NULL WHERE id = ?", id.captureOp)
				exec("DELETE FROM events WHERE operation_id = ? AND type = 'completed'", id.captureOp)
				exec("UPDATE effects SET state = 'queued', next_at = created_at WHERE operation_id = ?", id.captureOp)
			},
			func(id ids) found {
				return found{"a payment is captured by one capture, with what it asked for: " + id.captured.ID, "every open capture or cancel holds its payment: " + id.captureOp}
			},
		},
		"a captured payment of which nothing is captured": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE payments SET captured_minor = 0, refunded_minor = 0 WHERE id = ?", id.captured.ID)
			},
			func(id ids) found {
				return found{"a payment is captured by one capture, with what it asked for: " + id.captured.ID, "reservations are those of open refunds, and refunded is what is done: " + id.captured.ID}
			},
		},
		"a payment that nobody has captured": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE payments SET state = 'captured', captured_minor = 1 WHERE id = ?", id.authorized.ID)
			},
			func(id ids) found {
				return found{"a payment is captured by one capture, with what it asked for: " + id.authorized.ID}
			},
		},
		"a payment that nobody has canceled": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE payments SET state = 'canceled' WHERE id = ?", id.authorized.ID)
			},
			func(id ids) found {
				return found{"a payment is canceled by a cancel, or was never authorized: " + id.authorized.ID}
			},
		},
		"a cancel after which the payment is authorized": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE payments SET state = 'authorized' WHERE id = ?", id.canceled.ID)
			},
			func(id ids) found {
				return found{"a payment is canceled by a cancel, or was never authorized: " + id.canceled.ID}
			},
		},
		"more that is captured than was authorized": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE payments SET captured_minor = 1251 WHERE id = ?", id.captured.ID)
			},
			func(id ids) found {
				return found{"no more is captured than was authorized, nor refunded than was captured: " + id.captured.ID}
			},
		},
		"more that is refunded than was captured": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE payments SET refund_reserved_minor = 1001, refunded_minor = 250 WHERE id = ?", id.captured.ID)
			},
			func(id ids) found {
				return found{"no more is captured than was authorized, nor refunded than was captured: " + id.captured.ID, "reservations are those of open refunds, and refunded is what is done: " + id.captured.ID}
			},
		},
		"a reservation for no refund": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE payments SET refund_reserved_minor = 1 WHERE id = ?", id.captured.ID)
			},
			func(id ids) found {
				return found{"reservations are those of open refunds, and refunded is what is done: " + id.captured.ID}
			},
		},
		"a refund that is lost": {
			func(exec func(string, ...any), id ids) { exec("DELETE FROM refunds WHERE id = ?", id.refund.ID) },
			func(id ids) found {
				return found{"every refund that was accepted is there: " + id.refund.OperationID, "reservations are those of open refunds, and refunded is what is done: " + id.captured.ID}
			},
		},
		"a refund of another payment": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE refunds SET payment_id = 'pay_none' WHERE id = ?", id.refund.ID)
			},
			func(id ids) found {
				return found{"every refund has its operation and its payment: " + id.refund.ID, "reservations are those of open refunds, and refunded is what is done: " + id.captured.ID}
			},
		},
		"an effect that is lost": {
			func(exec func(string, ...any), id ids) {
				exec("DELETE FROM effects WHERE operation_id = ?", id.captureOp)
			},
			func(id ids) found { return found{"what moves money has its effect: " + id.captureOp} },
		},
		"an operation without an effect that is open": {
			func(exec func(string, ...any), id ids) {
				exec("UPDATE operations SET state = 'queued', response_status = 0, response_body = NULL, completed_at = NULL WHERE idempotency_key LIKE 'put-captured%'")
				exec("DELETE FROM events WHERE type = 'completed' AND operation_id = (SELECT id FROM operations WHERE idempotency_key LIKE 'put-captured%')")
				exec("UPDATE events SET operation_id = 'op_put' WHERE operation_id = (SELECT id FROM operations WHERE idempotency_key LIKE 'put-captured%')")
				exec("UPDATE operations SET id = 'op_put' WHERE idempotency_key LIKE 'put-captured%'")
			},
			func(ids) found { return found{"no local operation is open: op_put"} },
		},
	}
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		dbtest.Unprotect(t, s.db)
		id := ids{captured: s.captured("captured"), authorized: s.authorized("authorized")}
		id.canceled = s.done(s.cancel("x", s.authorized("canceled").ID, wait), "canceled")
		id.captureOp = s.capture("capture-captured", id.captured.ID, "12.50").Header.Get("Operation-Id")
		id.refund = of[refund](t, s.refund("r", id.captured.ID, "2.50", wait))
		expect(t, "a refusal", s.refund("r2", id.captured.ID, "12"), 409, "refund-exceeds-remaining")
		s.healthy()

		exec := func(statement string, args ...any) {
			if err := s.db.Read(t.Context()).Exec(statement, args...).Error; err != nil {
				t.Error(err)
			}
		}
		if err := s.Stop(); err != nil { // it would bring out what is made due
			t.Fatal(err)
		}
		tables := []string{"operations", "events", "orders", "payments", "refunds", "effects"}
		for _, table := range tables {
			exec("CREATE TABLE kept_" + table + " AS SELECT * FROM " + table)
		}
		// Without the constraints that keep most of this from happening.
		exec("DROP TABLE payments")
		exec("CREATE TABLE payments AS SELECT * FROM kept_payments")
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				c.damage(exec, id)
				var got []string
				for _, v := range s.at(t).fsck() {
					got = append(got, v.Check+": "+v.ID)
				}
				slices.Sort(got)
				if diff := cmp.Diff(c.want(id), got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				for _, table := range tables {
					exec("DELETE FROM " + table)
					exec("INSERT INTO " + table + " SELECT * FROM kept_" + table)
				}
			})
		}
	})
}

// The constraints hold where all else has failed.
func TestTheTableRefusesWhatMustNeverBe(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := start(t, kind)
		p := s.captured("o")
		for _, statement := range []string{
			"UPDATE payments SET captured_minor = 1251",
			"UPDATE payments SET refunded_minor = 1251",
			"UPDATE payments SET refund_reserved_minor = 1000, refunded_minor = 251",
			"UPDATE payments SET refund_reserved_minor = -1",
			"UPDATE payments SET state = 'unknown'",
			"UPDATE orders SET amount_minor = 0",
			"INSERT INTO payments SELECT account_id, 'pay_2', order_id, amount_minor, currency, 'pending', 0, 0, 0, 0, '', 'op', '', created_at, updated_at FROM payments",
		} {
			if err := s.db.Read(t.Context()).Exec(statement).Error; err == nil {
				t.Errorf("%s: done", statement)
			}
		}
		if got := s.payment(p.ID); got != p {
			t.Errorf("%+v", got)
		}
	})
}
