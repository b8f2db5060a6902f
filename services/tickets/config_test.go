package tickets_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/database/dbtest"
	"github.com/einmal/einmal/pkg/server"
	"github.com/einmal/einmal/services/tickets"
)

// What a service publishes in its policy, it does: a time that would be taken for another is refused at the start.
func TestNewRefusesTimesThatItCannotKeep(t *testing.T) {
	db := dbtest.Open(t, database.SQLite)
	for setting, change := range map[string]func(*catalogue.Settings, time.Duration){
		"EINMAL_WAIT_BUDGET":         func(s *catalogue.Settings, d time.Duration) { s.WaitBudget = d },
		"EINMAL_RESPONSE_RETENTION":  func(s *catalogue.Settings, d time.Duration) { s.ResponseRetention = d },
		"EINMAL_TOMBSTONE_RETENTION": func(s *catalogue.Settings, d time.Duration) { s.TombstoneRetention = d },
		"EINMAL_PURGE_EVERY":         func(s *catalogue.Settings, d time.Duration) { s.PurgeEvery = d },
	} {
		for _, value := range []time.Duration{0, -time.Second} {
			settings := catalogue.Settings{WaitBudget: time.Second, ResponseRetention: time.Hour, TombstoneRetention: time.Hour, ApprovalTTL: 30 * time.Minute, ApprovalThreshold: 10000, PurgeEvery: time.Minute, EffectDeadline: 24 * time.Hour}
			change(&settings, value)
			_, err := tickets.New(tickets.Config{Config: server.Config{Listen: "127.0.0.1:0"}, Settings: settings}, tickets.Deps{DB: db, Log: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), setting) {
				t.Errorf("%s %s: error %v", setting, value, err)
			}
		}
	}
}

func TestNewRefusesADeskThatCannotBeCalled(t *testing.T) {
	db := dbtest.Open(t, database.SQLite)
	for _, url := range []string{"desk", "localhost:8090", "ftp://desk", "http://", "http://%zz", "https://desk?x=1", "https://desk#x"} {
		config := defaults()
		config.ProviderURL = url
		_, err := tickets.New(config, tickets.Deps{DB: db, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), "EINMAL_PROVIDER_URL") {
			t.Errorf("%s: error %v", url, err)
		}
	}
}

func TestNewRefusesAProjectThatIsNone(t *testing.T) {
	config := defaults()
	config.AlertProject = "Alerts"
	_, err := tickets.New(config, tickets.Deps{DB: dbtest.Open(t, database.SQLite), Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "EINMAL_ALERT_PROJECT") {
		t.Errorf("error %v", err)
	}
}
