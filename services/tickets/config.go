package tickets

import (
	"fmt"
	"net/url"
	"time"

	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/server"
)

// Config is every setting of the service.
type Config struct {
	server.Config `set:"listen=127.0.0.1:8081"`
	catalogue.Settings
	audit.Sealing

	// The embedded database by default, so that one command runs everything.
	DatabaseURL string `env:"EINMAL_DATABASE_URL" default:"${tickets_database}" placeholder:"URL" help:"sqlite:PATH or postgres://…"`

	// Off where the role that the service connects as owns no tables; then run einmal migrate as one that does.
	Migrate bool `env:"EINMAL_MIGRATE" default:"true" negatable:"" help:"Bring the database to the newest version at the start."`

	// Without a desk nothing is mirrored.
	ProviderURL       string `env:"EINMAL_PROVIDER_URL" placeholder:"URL" help:"Where the external ticket desk answers; empty: tickets are not mirrored. Called directly: HTTPS_PROXY is not used."`
	ProviderToken     string `env:"EINMAL_PROVIDER_TOKEN" default:"demo-provider" placeholder:"TOKEN" help:"Bearer token for sends to the desk."`
	ProviderReadToken string `env:"EINMAL_PROVIDER_READ_TOKEN" default:"demo-provider-read" placeholder:"TOKEN" help:"Bearer token for look-ups at the desk."`

	// Part of every effect key: two installations that share a desk must not take each other's tickets for their own. To be set where the database's own
	// does not do: where a copy of a database goes its own way, and where a lost database is replaced by an empty one, whose callers
	// send again what was sent before.
	Namespace string `env:"EINMAL_NAMESPACE" placeholder:"NAME" help:"Name of this installation in what it sends outside; empty: one that was made with its database. Never change it once something was sent."`

	// What the desk can do decides how an unknown outcome is cleared. Declaring more than it keeps breaks the promise.
	DeskAbility string `env:"EINMAL_DESK_ABILITY" default:"key" enum:"key,close,lookup,none" help:"key: remembers effect keys and can be looked up; close: refuses sends below a floor; lookup: can be looked up; none."`

	// Ten seconds is past where a desk that still works answers.
	ProviderTimeout time.Duration `env:"EINMAL_PROVIDER_TIMEOUT" default:"10s" help:"Deadline of one call to the desk."`

	// Three calls long: a worker that is slow, not dead, keeps its effect.
	EffectLease time.Duration `env:"EINMAL_EFFECT_LEASE" default:"30s" help:"How long a worker that has taken an effect is left alone; longer than EINMAL_PROVIDER_TIMEOUT."`

	// Soon enough for people who watch, rare enough for a desk with a thousand unknowns.
	ReconcileEvery time.Duration `env:"EINMAL_RECONCILE_EVERY" default:"2s" help:"How long after an unknown outcome the desk is asked, and how often due effects are looked for."`

	// What keyed APIs commonly promise (Stripe: at least 24 hours).
	KeyWindow time.Duration `env:"EINMAL_KEY_WINDOW" default:"24h" help:"How long the desk remembers an effect key, counted from the first send."`

	// Alerts carry who they are for as a label, if anywhere. One whose label is no project's name still needs a ticket somewhere.
	AlertProjectLabel string `env:"EINMAL_ALERT_PROJECT_LABEL" default:"project" placeholder:"LABEL" help:"Label of an alert that names the project of its ticket."`
	AlertProject      string `env:"EINMAL_ALERT_PROJECT" default:"alerts" placeholder:"PROJECT" help:"Project of alerts without that label, or where it is no name of a project."`
}

// validate says which setting is wrong. A desk that can't be called at all would leave every mirror unknown.
func (c Config) validate() error {
	if c.ProviderURL != "" {
		u, err := url.Parse(c.ProviderURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("EINMAL_PROVIDER_URL %q is not http://HOST or https://HOST, with a path at most", c.ProviderURL)
		}
	}
	if err := c.Settings.Validate(); err != nil {
		return err
	}
	if !name.MatchString(c.AlertProject) {
		return fmt.Errorf("EINMAL_ALERT_PROJECT %q is no project: it must be 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit", c.AlertProject)
	}
	return nil
}
