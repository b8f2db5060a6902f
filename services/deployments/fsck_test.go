package deployments_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/fsck"
	"github.com/einmal/einmal/services/deployments"
)

// The checks, by their names.
const (
	local     = "no local operation is open"
	complete  = "an operation that brings a release out has its deployment and its effect"
	made      = "every deployment was made by an operation that brings a release out"
	finished  = "a deployment is finished when its rollout has ended"
	held      = "a lock is held by a deployment that is not over"
	apart     = "a deployment that is under way holds its environment or waits for it"
	one       = "one rollout goes on in an environment"
	waits     = "whoever waits for an environment waits for somebody, and was never sent"
	due       = "a rollout that is not due waits for its environment"
	rising    = "tokens only rise"
	live      = "what is live is the last deployment of its service that succeeded"
	breaksOff = "a cancelation that is accepted has its effect and the deployment that it breaks off"
)

func TestFsckSeesEachOfItsViolations(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		s := startAt(t, kind, startCluster(t, kind, patience))
		quick := startAt(t, kind, startCluster(t, kind, 1))
		before := quick.succeeds(t, "before", command("a", ""))
		last := quick.succeeds(t, "last", command("b", ""))
		holder := s.accepted(t, s.deploy(t, "holder", command("c", "")))
		s.is(t, holder.ID, "running")
		waiting := s.accepted(t, s.deploy(t, "waiting", command("d", queued)))
		for _, r := range []running{s, quick} {
			if err := r.Stop(); err != nil { // so that nothing changes beside the damage
				t.Fatal(err)
			}
		}

		for name, c := range map[string]struct {
			of     running
			damage []string
			want   []string // checks
		}{
			"nothing":                      {s, nil, nil},
			"nothing, where all has ended": {quick, nil, nil},
			"an open environment.put": {s, []string{
				"UPDATE operations SET type = 'environment.put' WHERE id = '" + waiting.OperationID + "'",
			}, []string{local, made}},
			"a deployment that is lost":         {s, []string{"DELETE FROM deployments WHERE id = '" + waiting.ID + "'"}, []string{complete}},
			"an effect that is lost":            {quick, []string{"DELETE FROM effects WHERE operation_id = '" + before.OperationID + "'"}, []string{complete, made}},
			"a deployment that ended too early": {s, []string{"UPDATE deployments SET finished_at = created_at WHERE id = '" + waiting.ID + "'"}, []string{finished}},
			"a lock that nobody leaves":         {quick, []string{"UPDATE environments SET holder = '" + last.ID + "', held_since = created_at WHERE account_id = 'acme' AND name = 'prod'"}, []string{held}},
			"a lock that was taken away": {s, []string{
				"UPDATE environments SET holder = '', held_since = NULL WHERE account_id = 'acme' AND name = 'prod'",
			}, []string{apart, waits}},
			"two that go on": {s, []string{
				"UPDATE effects SET state = 'unknown', doubt = 0, first_sent_at = created_at, next_at = created_at WHERE operation_id = '" + waiting.OperationID + "'",
			}, []string{one, waits}},
			"one that waits and is due": {s, []string{"UPDATE effects SET next_at = created_at WHERE operation_id = '" + waiting.OperationID + "'"}, []string{waits}},
			"one that holds and is not due": {s, []string{
				"UPDATE effects SET state = 'queued', doubt = NULL, first_sent_at = NULL, accepted_at = NULL, next_at = NULL WHERE operation_id = '" + holder.OperationID + "'",
			}, []string{due}},
			"a token that went back": {s, []string{"UPDATE environments SET token = 0, floor = 0 WHERE account_id = 'acme' AND name = 'prod'"}, []string{rising}},
			"a token that was drawn twice": {quick, []string{
				"UPDATE deployments SET fencing_token = (SELECT fencing_token FROM deployments d WHERE d.id = '" + before.ID + "') WHERE id = '" + last.ID + "'",
			}, []string{rising}},
			"a release that was replaced": {quick, []string{"UPDATE releases SET deployment_id = '" + before.ID + "', artifact = '" + before.Artifact + "'"}, []string{live}},
			"a release of something else": {quick, []string{"UPDATE releases SET artifact = 'x'"}, []string{live}},
			"a cancelation without its effect": {s, []string{
				"UPDATE operations SET type = 'deployment.cancel' WHERE id = '" + waiting.OperationID + "'", "DELETE FROM effects WHERE operation_id = '" + waiting.OperationID + "'",
			}, []string{breaksOff, made}},
		} {
			t.Run(name, func(t *testing.T) {
				slices.Sort(c.want)
				if diff := cmp.Diff(c.want, c.of.damaged(t, c.damage)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	})
}

// damaged does damage to a database, and returns which checks fail then, beside those that every service has.
func (r running) damaged(t *testing.T, damage []string) (checks []string) {
	t.Helper()
	exec := func(statement string) {
		if err := r.db.Read(t.Context()).Exec(statement).Error; err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	tables := []string{"operations", "effects", "deployments", "environments", "releases"}
	for _, table := range tables {
		exec("CREATE TABLE kept_" + table + " AS SELECT * FROM " + table)
	}
	for _, statement := range damage {
		exec(statement)
	}
	all, err := fsck.Run(context.Background(), r.db, deployments.Checks()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if !slices.Contains(checks, v.Check) && slices.ContainsFunc(ours, func(name string) bool { return name == v.Check }) {
			checks = append(checks, v.Check)
		}
	}
	for _, table := range tables {
		exec("DELETE FROM " + table)
		exec("INSERT INTO " + table + " SELECT * FROM kept_" + table)
		exec("DROP TABLE kept_" + table)
	}
	slices.Sort(checks)
	return checks
}

// ours are the checks of this service.
var ours = []string{local, complete, made, finished, held, apart, one, waits, due, rising, live, breaksOff}
