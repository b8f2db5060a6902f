package deployments_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/services/deployments"
)

func TestAWrongSettingIsNamed(t *testing.T) {
	db := dbtest.Open(t, database.SQLite)
	refused := func(setting string, change func(*deployments.Config)) {
		config := defaults()
		change(&config)
		if _, err := deployments.New(config, deployments.Deps{DB: db, Log: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), setting) {
			t.Errorf("%s: error %v", setting, err)
		}
	}
	for _, url := range []string{"", "cluster", "localhost:8090", "ftp://cluster", "http://", "http://%zz", "https://cluster?x=1", "https://cluster#x"} {
		refused("EINMAL_PROVIDER_URL", func(c *deployments.Config) { c.ProviderURL = url })
	}
	refused("EINMAL_FOLLOW_EVERY", func(c *deployments.Config) { c.FollowEvery = 0 })
	refused("EINMAL_WAIT_BUDGET", func(c *deployments.Config) { c.WaitBudget = 0 })
	refused("the lease", func(c *deployments.Config) { c.EffectLease = c.ProviderTimeout })
}
