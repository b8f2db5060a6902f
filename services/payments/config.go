package payments

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/einmal/einmal/pkg/audit"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/server"
)

// Config is every setting of the service.
type Config struct {
	server.Config `set:"listen=127.0.0.1:8082"`
	catalogue.Settings
	audit.Sealing
	Provider

	// The embedded database by default, so that one command runs everything.
	DatabaseURL string `env:"EINMAL_DATABASE_URL" default:"${payments_database}" placeholder:"URL" help:"sqlite:PATH or postgres://…"`

	// Off where the role that the service connects as owns no tables; then run einmal migrate as one that does.
	Migrate bool `env:"EINMAL_MIGRATE" default:"true" negatable:"" help:"Bring the database to the newest version at the start."`

	// The simulator by default. Stripe is https://api.stripe.com/v1, with a secret key as token.
	ProviderURL       string `env:"EINMAL_PROVIDER_URL" default:"http://127.0.0.1:8090" placeholder:"URL" help:"Where a payment provider with Stripe's interface answers. Without a path, /psp is added, where the simulator has it. Called directly: HTTPS_PROXY is not used."`
	ProviderToken     string `env:"EINMAL_PROVIDER_TOKEN" default:"demo-provider" placeholder:"TOKEN" help:"The provider's secret key, for sends."`
	ProviderReadToken string `env:"EINMAL_PROVIDER_READ_TOKEN" default:"demo-provider-read" placeholder:"TOKEN" help:"A key that may only read, for look-ups."`

	// Part of every effect key: two installations that share a provider must not take each other's payments for their own. To be set where the database's own
	// does not do: where a copy of a database goes its own way, and where a lost database is replaced by an empty one, whose callers
	// send again what was sent before.
	Namespace string `env:"EINMAL_NAMESPACE" placeholder:"NAME" help:"Name of this installation in what it sends outside; empty: one that was made with its database. Never change it once something was sent."`

	// Ten seconds is past where a provider that still works answers, also a card's bank behind it.
	ProviderTimeout time.Duration `env:"EINMAL_PROVIDER_TIMEOUT" default:"10s" help:"Deadline of what one attempt asks of the provider."`

	// Three calls long: a worker that is slow, not dead, keeps its effect.
	EffectLease time.Duration `env:"EINMAL_EFFECT_LEASE" default:"30s" help:"How long a worker that has taken an effect is left alone; longer than EINMAL_PROVIDER_TIMEOUT."`

	// Soon enough for people who watch, rare enough for a provider with a thousand unknowns.
	ReconcileEvery time.Duration `env:"EINMAL_RECONCILE_EVERY" default:"2s" help:"How long after an unknown outcome the provider is asked, and how often due effects are looked for."`

	// What Stripe promises: at least 24 hours.
	KeyWindow time.Duration `env:"EINMAL_KEY_WINDOW" default:"24h" help:"How long the provider remembers an effect key, counted from the first send."`
}

// Provider are the settings that only a payment provider has.
type Provider struct {
	// Without one nobody can prove to be the provider, so nobody is believed.
	WebhookSecret string `name:"psp-webhook-secret" env:"EINMAL_PSP_WEBHOOK_SECRET" placeholder:"SECRET" help:"With which the provider signs its webhooks; empty: none is accepted."`

	// Stripe's test card that is always accepted. A shop would take what its customer's browser has collected.
	PaymentMethod string `name:"psp-payment-method" env:"EINMAL_PSP_PAYMENT_METHOD" default:"pm_card_visa" placeholder:"ID" help:"The provider's name of what is charged."`

	// The account of the demo. What the provider tells of others' objects belongs to none of ours.
	HookAccount string `name:"psp-hook-account" env:"EINMAL_PSP_HOOK_ACCOUNT" default:"acme" placeholder:"ACCOUNT" help:"Whose operators are asked about objects at the provider that no operation of ours has made."`

	// A webhook can come before what it is about is known here, as after a restore from a backup. A day later it is not early any more.
	UnmatchedAfter time.Duration `name:"psp-unmatched-after" env:"EINMAL_PSP_UNMATCHED_AFTER" default:"24h" help:"How long a webhook about an unknown object is kept before a person is asked."`
}

// validate says which setting is wrong.
func (c Config) validate() error {
	u, err := url.Parse(c.ProviderURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("EINMAL_PROVIDER_URL %q is not http://HOST or https://HOST, with a path at most", c.ProviderURL)
	case c.PaymentMethod == "" || c.HookAccount == "":
		return fmt.Errorf("EINMAL_PSP_PAYMENT_METHOD and EINMAL_PSP_HOOK_ACCOUNT must not be empty")
	case strings.HasPrefix(c.ProviderToken, "sk_") && c.ProviderReadToken == "demo-provider-read":
		return fmt.Errorf("EINMAL_PROVIDER_READ_TOKEN is the simulator's: set it to a restricted key that may read payments and refunds, or to the same key as EINMAL_PROVIDER_TOKEN")
	case c.UnmatchedAfter <= 0:
		return fmt.Errorf("EINMAL_PSP_UNMATCHED_AFTER is %s; it must be longer than nothing", c.UnmatchedAfter)
	}
	return c.Settings.Validate()
}

// simulatorPath is where the simulator has its payment provider.
const simulatorPath = "/psp"

// providerBase is where the provider answers, in two parts, since its library takes no path: it begins all of its own with /v1.
func (c Config) providerBase() (origin, path string) {
	u, err := url.Parse(c.ProviderURL)
	if err != nil {
		return c.ProviderURL, "" // validate has refused it
	}
	if path = strings.TrimSuffix(u.Path, "/"); path == "" {
		path = simulatorPath
	}
	return u.Scheme + "://" + u.Host, strings.TrimSuffix(path, "/v1")
}
