package deployments_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/deployments"
)

func TestForgottenOperations(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, kind database.Kind) {
		r := start(t, kind)
		first, second := r.succeeds(t, "k1", command("1", "")), r.succeeds(t, "k2", command("2", ""))
		r.healthy(t)
		startOn(t, r.db, r.cluster, func(c *deployments.Config) {
			c.ResponseRetention, c.TombstoneRetention, c.PurgeEvery = time.Millisecond, time.Millisecond, 10*time.Millisecond
		})
		await(t, "nothing is left of them", func() bool {
			var n int64
			return r.db.Read(t.Context()).Table("operations").Count(&n).Error == nil && n == 0
		})
		r.healthy(t)
		if diff := cmp.Diff([]deployment{first, second}, []deployment{r.now(t, first.ID), r.now(t, second.ID)}); diff != "" {
			t.Error(diff)
		}
		if live := r.prod(t).live(); live != second.Artifact {
			t.Errorf("%s is live", live)
		}
		violations, err := deployments.Ledger.Against(t.Context(), r.db, r.cluster.URL)
		if err != nil || len(violations) > 0 {
			t.Error(violations, err)
		}
	})
}
