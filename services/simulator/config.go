package simulator

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"
)

// Config is every setting of the simulator.
type Config struct {
	// On loopback by default: whoever can connect can direct the world.
	Listen string `env:"EINMAL_LISTEN" default:"127.0.0.1:8090" placeholder:"HOST:PORT" help:"Address to listen on. Whoever reaches it may arm faults."`

	// ListenSetting is what Listen was set by, for who has to change it; empty: EINMAL_LISTEN. A process of several services has others.
	ListenSetting string `kong:"-"`

	DatabaseURL string `env:"EINMAL_DATABASE_URL" default:"sqlite:./data/einmal_simulator.db" placeholder:"URL" help:"sqlite:PATH or postgres://…; one process at a time."`

	// Off where the role that the simulator connects as owns no tables.
	Migrate bool `env:"EINMAL_MIGRATE" default:"true" negatable:"" help:"Bring the database to the newest version at the start."`

	// Published, like the demo identities: nothing real is behind them.
	Token     string `env:"EINMAL_PROVIDER_TOKEN" default:"demo-provider" placeholder:"TOKEN" help:"Bearer token that may ask the targets for anything."`
	ReadToken string `env:"EINMAL_PROVIDER_READ_TOKEN" default:"demo-provider-read" placeholder:"TOKEN" help:"Bearer token that may only look up."`

	// Empty: no webhooks, unless POST /_webhooks asks for them.
	PSPWebhookURL string `env:"EINMAL_PSP_WEBHOOK_URL" placeholder:"URL" help:"Where the payment provider sends its events, as in http://127.0.0.1:8082/v1/hooks/psp; empty: nowhere."`

	// Published, like the tokens.
	PSPWebhookSecret string `env:"EINMAL_PSP_WEBHOOK_SECRET" default:"whsec_demo" placeholder:"SECRET" help:"What the payment provider signs its events with."`

	// Long enough to look at, short enough to wait for.
	RolloutTime time.Duration `env:"EINMAL_ROLLOUT_TIME" default:"300ms" help:"How long a rollout at the cluster takes."`

	// Requests that hang or are delayed end at once; the others take milliseconds.
	ShutdownGrace time.Duration `env:"EINMAL_SHUTDOWN_GRACE" default:"8s" help:"How long requests in progress may take to end when the process is told to leave."`

	LogLevel slog.Level `env:"EINMAL_LOG_LEVEL" default:"info" help:"debug, info, warn or error. Requests are logged at debug, faults that strike at info."`
}

// Logger returns the logger that the configuration describes: JSON, one line a record.
func (c Config) Logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: c.LogLevel}))
}

func (c Config) validate() error {
	var errs []error
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("%s %q is not HOST:PORT", c.listenSetting(), c.Listen))
	}
	if c.Token == "" || c.ReadToken == "" {
		errs = append(errs, errors.New("EINMAL_PROVIDER_TOKEN and EINMAL_PROVIDER_READ_TOKEN cannot be empty"))
	}
	if c.PSPWebhookURL != "" && (!isHTTP(c.PSPWebhookURL) || c.PSPWebhookSecret == "") {
		errs = append(errs, errors.New("EINMAL_PSP_WEBHOOK_URL must be an http or https URL with a host, and EINMAL_PSP_WEBHOOK_SECRET not empty"))
	}
	if c.RolloutTime < 0 {
		errs = append(errs, errors.New("EINMAL_ROLLOUT_TIME cannot be negative"))
	}
	if c.ShutdownGrace < 0 {
		errs = append(errs, errors.New("EINMAL_SHUTDOWN_GRACE cannot be negative"))
	}
	return errors.Join(errs...)
}

func (c Config) listenSetting() string { return cmp.Or(c.ListenSetting, "EINMAL_LISTEN") }
