package deployments

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
	server.Config `set:"listen=127.0.0.1:8083"`
	catalogue.Settings
	audit.Sealing
	Cluster

	// The embedded database by default, so that one command runs everything.
	DatabaseURL string `env:"EINMAL_DATABASE_URL" default:"${deployments_database}" placeholder:"URL" help:"sqlite:PATH or postgres://…"`

	// Off where the role that the service connects as owns no tables; then run einmal migrate as one that does.
	Migrate bool `env:"EINMAL_MIGRATE" default:"true" negatable:"" help:"Bring the database to the newest version at the start."`

	// The simulator by default.
	ProviderURL       string `env:"EINMAL_PROVIDER_URL" default:"http://127.0.0.1:8090" placeholder:"URL" help:"Where the cluster answers."`
	ProviderToken     string `env:"EINMAL_PROVIDER_TOKEN" default:"demo-provider" placeholder:"TOKEN" help:"Bearer token for sends to the cluster, closes and stops."`
	ProviderReadToken string `env:"EINMAL_PROVIDER_READ_TOKEN" default:"demo-provider-read" placeholder:"TOKEN" help:"Bearer token for look-ups at the cluster."`

	// Part of every effect key: two installations that share a cluster must not take each other's rollouts for their own. To be set where the database's own
	// does not do: where a copy of a database goes its own way, and where a lost database is replaced by an empty one, whose callers
	// send again what was sent before.
	Namespace string `env:"EINMAL_NAMESPACE" placeholder:"NAME" help:"Name of this installation in what it sends outside; empty: one that was made with its database. Never change it once something was sent."`

	// Ten seconds is past where a cluster that still works answers: it begins a rollout, and does not wait for its end.
	ProviderTimeout time.Duration `env:"EINMAL_PROVIDER_TIMEOUT" default:"10s" help:"Deadline of one call to the cluster."`

	// Three calls long: a worker that is slow, not dead, keeps its effect.
	EffectLease time.Duration `env:"EINMAL_EFFECT_LEASE" default:"30s" help:"How long a worker that has taken an effect is left alone; longer than EINMAL_PROVIDER_TIMEOUT."`

	// Soon enough for people who watch, rare enough for a cluster with a thousand unknowns.
	ReconcileEvery time.Duration `env:"EINMAL_RECONCILE_EVERY" default:"2s" help:"How long after an unknown outcome the cluster is asked, and how often due effects are looked for."`

	// What keyed APIs commonly promise (Stripe: at least 24 hours).
	KeyWindow time.Duration `env:"EINMAL_KEY_WINDOW" default:"24h" help:"How long the cluster remembers an effect key, counted from the first send."`
}

// Cluster are the settings that only a cluster has.
type Cluster struct {
	// A rollout of the simulator takes 300 ms, one of a real cluster minutes: the first question costs little, and those after it
	// come ever less often.
	FollowEvery time.Duration `name:"follow-every" env:"EINMAL_FOLLOW_EVERY" default:"200ms" help:"How soon after its begin a rollout is asked after, and the least between such questions."`
}

// validate says which setting is wrong.
func (c Config) validate() error {
	u, err := url.Parse(c.ProviderURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("EINMAL_PROVIDER_URL %q is not http://HOST or https://HOST, with a path at most", c.ProviderURL)
	case c.FollowEvery <= 0:
		return fmt.Errorf("EINMAL_FOLLOW_EVERY is %s; it must be longer than nothing", c.FollowEvery)
	}
	return c.Settings.Validate()
}
