package fsck_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/fsck"
	"github.com/einmal/einmal/pkg/idempotency"
)

// effect inserts the effect of an operation: its state, and what the protocol says belongs to it.
const effect = `INSERT INTO effects (account_id, id, operation_id, idempotency_key, type, target, effect_key, command, state, fence, doubt, first_sent_at,
		accepted_at, leased_by, next_at, attempts, asks, priority, reference, review_id, created_at, updated_at)
	SELECT account_id, ?, id, idempotency_key, type, 'desk', idempotency_key, ?, ?, ?, ?, ?, ?, '', ?, 1, 0, false, '', ?, created_at, updated_at
	FROM operations WHERE account_id = 'acme' AND idempotency_key = ?`

// keepEffects is a healthy database with an effect in every state, eff_KEY of the operation of KEY.
func keepEffects(t *testing.T, kind database.Kind) kept {
	t.Helper()
	db := dbtest.Open(t, kind)
	log := audit.Open(db)
	exec := idempotency.New(db, idempotency.Options{Record: log.Record, Note: log.Note})
	k := kept{db, map[string]string{}}
	now := time.Now().UTC()
	answer := idempotency.Answer{Status: 200, Body: []byte(`{}`)}
	for _, e := range []struct {
		key      string
		state    idempotency.State
		fence    int
		doubt    any
		sent     any
		accepted any
		next     any
		review   string
	}{
		{"asked", idempotency.AwaitingApproval, 0, nil, nil, nil, nil, ""},
		{"new", idempotency.Queued, 0, nil, nil, nil, now, ""},
		{"again", idempotency.Queued, 2, 1, now, nil, now, ""},
		{"sending", idempotency.Running, 1, 1, now, nil, now, ""},
		{"rolling", idempotency.Running, 2, 1, now, now, now, ""},
		{"unknown", idempotency.Unknown, 2, 1, now, nil, now, ""},
		{"review", idempotency.Unknown, 2, 1, now, nil, nil, "rev_review"},
		{"late", idempotency.Unknown, 2, 1, now, nil, now, "rev_late"},
		{"happened", idempotency.Succeeded, 1, nil, now, nil, nil, ""},
		{"refused", idempotency.Failed, 1, nil, now, nil, nil, ""},
		{"withdrawn", idempotency.Canceled, 0, nil, nil, nil, nil, ""},
	} {
		result, err := exec.Do(t.Context(), idempotency.Request{
			Key: idempotency.Key(e.key), Type: "thing.create", Principal: "agent", Command: idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/things", Body: e.key},
		}, func(database.Tx, idempotency.Operation) (idempotency.Answer, error) {
			return idempotency.Answer{State: idempotency.Queued}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		k.id[e.key] = result.Operation.ID
		if e.state.Final() {
			answer.State = e.state
			err := db.InTx(t.Context(), func(tx database.Tx) error { return exec.Settle(tx, result.Operation, idempotency.Running, answer) })
			if err != nil {
				t.Fatal(err)
			}
		}
		k.exec(t, effect, "eff_"+e.key, []byte("{}"), e.state, e.fence, e.doubt, e.sent, e.accepted, e.next, e.review, e.key)
	}
	log.Close()
	k.exec(t, `INSERT INTO reviews (account_id, id, kind, operation_id, owner, evidence, state, opened_at, due_at, resolved_by)
		VALUES ('acme', 'rev_review', 'unknown', ?, 'operator', '[]', 'open', ?, ?, '')`, k.id["review"], now, now)
	k.exec(t, `INSERT INTO reviews (account_id, id, kind, operation_id, owner, evidence, state, opened_at, due_at, resolved_by)
		VALUES ('acme', 'rev_late', 'deadline', ?, 'operator', '[]', 'open', ?, ?, '')`, k.id["late"], now, now)
	k.exec(t, "UPDATE effects SET deadline = created_at, overdue_at = created_at WHERE id = 'eff_late'")
	for key, state := range map[string]string{"asked": "pending", "happened": "approved", "refused": "expired", "withdrawn": "rejected"} {
		k.exec(t, `INSERT INTO approvals (account_id, id, operation_id, idempotency_key, fingerprint, world_version, requested_by, facts, consequence,
				state, decided_by, approved, reason, created_at, expires_at, decided_at)
			SELECT account_id, ?, id, idempotency_key, fingerprint, '', principal, '{}', '', ?, ?, ?, '', ?, ?, ? FROM operations WHERE id = ?`,
			"apr_"+key, state, decided[state], state == "approved", now, now.Add(time.Minute), decidedAt(state, now), k.id[key])
		k.exec(t, "UPDATE effects SET approval_id = ?, approved_until = ? WHERE id = ?", "apr_"+key, now.Add(time.Minute), "eff_"+key)
	}
	k.exec(t, `INSERT INTO attempts (account_id, id, operation_id, effect_id, kind, fence, started_at, outcome, error, reference)
		VALUES ('acme', 'try_happened', ?, 'eff_happened', 'send', 1, ?, '', '', '')`, k.id["happened"], now.Add(time.Second))
	return k
}

// decided is who has decided an approval in each state.
var decided = map[string]string{"approved": "boss", "rejected": "boss"}

func decidedAt(state string, at time.Time) *time.Time {
	if decided[state] == "" {
		return nil
	}
	return &at
}

func TestEachCheckOfEffectsSeesWhatItIsAbout(t *testing.T) {
	const (
		orphan   = "every effect has its operation"
		ownKey   = "an effect has its operation's key"
		oneKey   = "no two effects have one effect key"
		together = "an operation and its effect end together"
		doubt    = "doubt and state agree"
		due      = "an open effect is due, held, or with a person"
		person   = "what waits for a person has an open review"
		question = "a question how an operation ends is about one that has not"
		late     = "what is open past its deadline was noticed, and a person asked"
		asked    = "what waits for an approval has an open question"
		open     = "an open question is about an effect that waits for it"
		its      = "an effect has the approval of its own operation and command"
		sent     = "what needs an approval was sent only while it had one"
		self     = "nobody has approved what they have asked for"
	)
	cases := map[string]struct {
		statement string
		of        string // the effect
		want      []string
	}{
		"an operation that is gone":                    {"UPDATE effects SET operation_id = 'op_gone' WHERE id = ?", "new", []string{orphan}},
		"an operation of another account":              {"UPDATE effects SET account_id = 'globex' WHERE id = ?", "new", []string{orphan}},
		"the key of another operation":                 {"UPDATE effects SET idempotency_key = 'again' WHERE id = ?", "new", []string{ownKey}},
		"the effect key of another":                    {"UPDATE effects SET effect_key = 'zzz' WHERE id IN (?, 'eff_unknown')", "sending", []string{oneKey}},
		"an unknown one that is in no doubt":           {"UPDATE effects SET doubt = NULL WHERE id = ?", "unknown", []string{doubt}},
		"an effect that ended alone":                   {"UPDATE effects SET state = 'failed', next_at = NULL WHERE id = ?", "new", []string{together}},
		"an effect that ended otherwise":               {"UPDATE effects SET state = 'succeeded' WHERE id = ?", "refused", []string{together}},
		"an operation that ended alone":                {"UPDATE effects SET state = 'queued', next_at = created_at WHERE id = ?", "withdrawn", []string{together}},
		"a doubt about what is not taken":              {"UPDATE effects SET doubt = 3 WHERE id = ?", "again", []string{doubt}},
		"a doubt about what was not sent":              {"UPDATE effects SET first_sent_at = NULL WHERE id = ?", "again", []string{doubt}},
		"a doubt about what waits for approval":        {"UPDATE effects SET doubt = 0, first_sent_at = created_at WHERE id = ?", "asked", []string{doubt}},
		"a doubt about what has happened":              {"UPDATE effects SET doubt = 1 WHERE id = ?", "happened", []string{doubt}},
		"a doubt about what was refused":               {"UPDATE effects SET doubt = 1 WHERE id = ?", "refused", []string{doubt}},
		"a doubt about what was withdrawn":             {"UPDATE effects SET doubt = 0, first_sent_at = created_at WHERE id = ?", "withdrawn", []string{doubt}},
		"a send under way that is in no doubt":         {"UPDATE effects SET doubt = NULL WHERE id = ?", "sending", []string{doubt}},
		"a queued one that nothing takes":              {"UPDATE effects SET next_at = NULL WHERE id = ?", "new", []string{due}},
		"one under way that nothing takes":             {"UPDATE effects SET next_at = NULL WHERE id = ?", "sending", []string{due}},
		"an unknown one that nobody is asked of":       {"UPDATE effects SET next_at = NULL WHERE id = ?", "unknown", []string{due, person}},
		"an unknown one whose review is gone":          {"UPDATE effects SET review_id = 'rev_gone' WHERE id = ?", "review", []string{person}},
		"an unknown one whose review is closed":        {"UPDATE reviews SET state = 'resolved' WHERE 'eff_review' = ?", "review", []string{person}},
		"one that waits for a question that is closed": {"UPDATE approvals SET state = 'expired' WHERE id = 'apr_asked' AND 'eff_asked' = ?", "asked", []string{asked}},
		"one that waits for no question":               {"UPDATE effects SET approval_id = '' WHERE id = ?", "asked", []string{asked, open + ": apr_asked", its + ": apr_asked"}},
		"one that waits for another time":              {"UPDATE effects SET approved_until = created_at WHERE id = ?", "asked", []string{asked}},
		"a question about what goes out":               {"UPDATE effects SET state = 'queued', next_at = created_at WHERE id = ?", "asked", []string{open + ": apr_asked"}},
		"an approval of another command":               {"UPDATE approvals SET fingerprint = 'v1:other' WHERE id = 'apr_happened' AND 'eff_happened' = ?", "happened", []string{its + ": apr_happened"}},
		"an approval that is gone":                     {"DELETE FROM approvals WHERE id = 'apr_withdrawn' AND 'eff_withdrawn' = ?", "withdrawn", []string{its}},
		"a send that nobody has approved":              {"UPDATE approvals SET approved = false WHERE id = 'apr_happened' AND 'eff_happened' = ?", "happened", []string{sent + ": try_happened"}},
		"a send before the approval":                   {"UPDATE approvals SET decided_at = expires_at WHERE id = 'apr_happened' AND 'eff_happened' = ?", "happened", []string{sent + ": try_happened"}},
		"a send after it":                              {"UPDATE approvals SET expires_at = decided_at WHERE id = 'apr_happened' AND 'eff_happened' = ?", "happened", []string{sent + ": try_happened"}},
		"an approval of one's own":                     {"UPDATE approvals SET decided_by = requested_by WHERE id = 'apr_happened' AND 'eff_happened' = ?", "happened", []string{self + ": apr_happened"}},
		"a question that is answered":                  {"UPDATE reviews SET operation_id = 'op_gone' WHERE 'eff_review' = ? AND id = 'rev_review'", "review", []string{question + ": rev_review"}},
		"a deadline that nobody has noticed":           {"UPDATE effects SET deadline = '2020-01-01 00:00:00+00:00' WHERE id = ?", "new", []string{late}},
		"a deadline that is not over yet":              {"UPDATE effects SET deadline = '2999-01-01 00:00:00+00:00' WHERE id = ?", "new", nil},
		"a deadline of which nobody was told":          {"UPDATE reviews SET kind = 'unknown' WHERE 'eff_late' = ? AND id = 'rev_late'", "late", []string{late}},
		"nothing":                                      {"UPDATE effects SET asks = asks WHERE id = ?", "review", nil},
	}
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		k := keepEffects(t, kind)
		find := func() (all []string) {
			t.Helper()
			violations, err := fsck.Run(t.Context(), k.db, append(fsck.Operations, fsck.Effects...)...)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range violations {
				if v.Advice == "" {
					t.Errorf("%s gives no advice", v.Check)
				}
				all = append(all, v.Check+": "+v.ID)
			}
			return all
		}
		if found := find(); len(found) > 0 {
			t.Fatalf("healthy: %v", found)
		}
		tables := []string{"effects", "reviews", "approvals"}
		for _, table := range tables {
			k.exec(t, "CREATE TABLE kept_"+table+" AS SELECT * FROM "+table)
		}
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				k.exec(t, c.statement, "eff_"+c.of)
				var want []string
				for _, check := range c.want {
					if !strings.Contains(check, ": ") { // of another row
						check += ": eff_" + c.of
					}
					want = append(want, check)
				}
				if diff := cmp.Diff(want, find()); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				for _, table := range tables {
					k.exec(t, "DELETE FROM "+table)
					k.exec(t, "INSERT INTO "+table+" SELECT * FROM kept_"+table)
				}
			})
		}
	})
}
