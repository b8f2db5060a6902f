package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"
)

// Config is what whoever runs a service decides about its HTTP side. A service's own settings embed it and say which port
// is theirs:
//
//	server.Config `set:"listen=127.0.0.1:8081"`
type Config struct {
	// On loopback by default, because that is where the published demo tokens are accepted.
	Listen string `env:"EINMAL_LISTEN" default:"${listen}" placeholder:"HOST:PORT" help:"Address to listen on. Without EINMAL_TOKENS_FILE it must be a loopback address."`

	// ListenSetting is what Listen was set by, for who has to change it; empty: EINMAL_LISTEN. A process of several services has others.
	ListenSetting string `kong:"-"`

	TokensFile string `env:"EINMAL_TOKENS_FILE" placeholder:"FILE" help:"Who may call: a line \"SHA256-OF-TOKEN PRINCIPAL ACCOUNT ROLE[,ROLE]\" for each token. Roles: agent, approver, operator, auditor."`

	// Anybody can read these tokens in the documentation, so accepting them where others can connect is a decision.
	Demo bool `env:"EINMAL_DEMO" help:"Accept the demo tokens on every address, and beside EINMAL_TOKENS_FILE."`

	// It is there so that one account's loop without a pause does not take the service from all others, not to shape
	// traffic: it is above what a process on a small machine answers.
	RateLimit float64 `env:"EINMAL_RATE_LIMIT" default:"5000" help:"Requests per second that an account may send to this process; 0: any number."`

	// Agents work in bursts: two seconds' worth of requests at once is no loop.
	RateBurst int `env:"EINMAL_RATE_BURST" default:"10000" help:"Requests that an account may send at once after a pause."`

	// For a load balancer that learns from /readyz: requests that it sends until its next probe must find an open door.
	// Nobody waits for that on a machine of one's own.
	DrainDelay time.Duration `env:"EINMAL_DRAIN_DELAY" default:"0s" help:"How long to go on accepting after /readyz has become false; the probe interval of a load balancer, if there is one."`

	// Shorter than the ten seconds after which docker stop kills. What is cut is safe to repeat with its key.
	ShutdownGrace time.Duration `env:"EINMAL_SHUTDOWN_GRACE" default:"8s" help:"How long requests in progress may take to end when the process is told to leave."`

	LogLevel slog.Level `env:"EINMAL_LOG_LEVEL" default:"info" help:"debug, info, warn or error. Reads are logged at debug, writes at info."`
}

// Logger returns the logger that the configuration describes: JSON, one line a record.
func (c Config) Logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: c.LogLevel}))
}

func (c Config) validate() error {
	var errs []error
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("EINMAL_LISTEN %q is not HOST:PORT", c.Listen))
	}
	if c.RateLimit < 0 || c.RateBurst < 0 || c.RateLimit > 0 && c.RateBurst == 0 {
		errs = append(errs, fmt.Errorf("EINMAL_RATE_LIMIT %g with EINMAL_RATE_BURST %d lets nothing through", c.RateLimit, c.RateBurst))
	}
	if c.DrainDelay < 0 || c.ShutdownGrace < 0 {
		errs = append(errs, errors.New("EINMAL_DRAIN_DELAY and EINMAL_SHUTDOWN_GRACE cannot be negative"))
	}
	return errors.Join(errs...)
}

// isLoopback reports whether only this machine can connect to the address.
func isLoopback(address string) bool {
	tcp, err := net.ResolveTCPAddr("tcp", address)
	return err == nil && tcp.IP.IsLoopback()
}
