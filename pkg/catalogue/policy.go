package catalogue

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/einmal/einmal/pkg/idempotency"
)

// Policy is the document at /.well-known/idempotency-policy: what a client may rely on when it repeats itself.
type Policy struct {
	Key                KeyPolicy        `json:"key"`
	Retention          Retention        `json:"retention"`
	WaitBudgetSeconds  float64          `json:"wait_budget_seconds"`
	FingerprintVersion string           `json:"fingerprint_version"`
	Operations         map[string]Entry `json:"operations"` // by operation type
}

// KeyPolicy says what a key looks like, after unquoting, and within what it is unique. Beside the pattern, the beginnings
// that the services use for keys of their own are refused.
type KeyPolicy struct {
	Pattern string `json:"pattern"`
	Scope   string `json:"scope"`
}

// Retention says how long a key is remembered: with its answer, and after that as a tombstone that prevents a second run.
type Retention struct {
	ResponseSeconds  int64 `json:"response_seconds"`
	TombstoneSeconds int64 `json:"tombstone_seconds"`
}

// Settings are the parts of the policy that whoever runs a service decides. A service's own settings embed them.
type Settings struct {
	// Longer than nearly all local work, shorter than the patience of nearly all clients.
	WaitBudget time.Duration `env:"EINMAL_WAIT_BUDGET" default:"2s" help:"How long a duplicate waits for the first attempt before it is told that the operation is in progress."`

	// A client that comes back after a long weekend still gets its answer.
	ResponseRetention time.Duration `env:"EINMAL_RESPONSE_RETENTION" default:"720h" help:"How long a final answer is replayed."`

	// Beyond any retry, and long enough for the disputes that follow a year's accounts.
	TombstoneRetention time.Duration `env:"EINMAL_TOMBSTONE_RETENTION" default:"9600h" help:"How long after that a key is still known, and answered 410."`

	// Long enough for somebody who is at work to look at it; what they were shown is mostly still so by then.
	ApprovalTTL time.Duration `env:"EINMAL_APPROVAL_TTL" default:"30m" help:"How long a question of approval, and a yes to it, hold; at most until the deadline of what is asked about."`

	// Ten thousand of nearly any currency is worth a second look.
	ApprovalThreshold int64 `env:"EINMAL_APPROVAL_THRESHOLD" default:"10000" placeholder:"AMOUNT" help:"From which amount on a payment needs a person's approval, in major units of whatever currency; 0: always."`

	// So often that a round has little to do; and looking for nothing costs two reads of an index.
	PurgeEvery time.Duration `env:"EINMAL_PURGE_EVERY" default:"1m" help:"How often what is past its retention is dropped."`

	// The longest of any type, so that by default each has its own.
	EffectDeadline time.Duration `env:"EINMAL_EFFECT_DEADLINE" default:"24h" help:"The longest that any effect is worth bringing out, in whole seconds; a type whose own deadline is sooner keeps it. Then nothing more is sent, and a person is asked about what is not certain."`
}

// maxThreshold is more than any amount: 15 digits in minor units.
const maxThreshold = 1_000_000_000_000_000

// Validate refuses times that a service would not keep as it publishes them. kong calls it, and so does each service.
func (s Settings) Validate() error {
	for _, setting := range []struct {
		name  string
		value time.Duration
	}{
		{"EINMAL_WAIT_BUDGET", s.WaitBudget},
		{"EINMAL_RESPONSE_RETENTION", s.ResponseRetention},
		{"EINMAL_TOMBSTONE_RETENTION", s.TombstoneRetention},
		{"EINMAL_APPROVAL_TTL", s.ApprovalTTL},
		{"EINMAL_PURGE_EVERY", s.PurgeEvery},
	} {
		if setting.value <= 0 {
			return fmt.Errorf("%s is %s; it must be longer than nothing", setting.name, setting.value)
		}
	}
	if d := s.EffectDeadline; d < time.Second || d%time.Second != 0 {
		return fmt.Errorf("EINMAL_EFFECT_DEADLINE is %s; it must be whole seconds, and one at least: the policy publishes it so", d)
	}
	if s.ApprovalThreshold < 0 || s.ApprovalThreshold > maxThreshold {
		return fmt.Errorf("EINMAL_APPROVAL_THRESHOLD is %d; it must be from 0 to %d", s.ApprovalThreshold, int64(maxThreshold))
	}
	return nil
}

// NewPolicy returns the policy of a service with these entries: Of(service), or All() for a process that serves all.
func NewPolicy(settings Settings, entries []Entry) Policy {
	p := Policy{
		Key: KeyPolicy{Pattern: idempotency.KeyPattern, Scope: "service, account"},
		Retention: Retention{
			ResponseSeconds:  int64(settings.ResponseRetention / time.Second),
			TombstoneSeconds: int64(settings.TombstoneRetention / time.Second),
		},
		WaitBudgetSeconds:  settings.WaitBudget.Seconds(),
		FingerprintVersion: idempotency.FingerprintVersion,
		Operations:         make(map[string]Entry, len(entries)),
	}
	for _, e := range entries {
		if len(e.Effects) > 0 {
			e.DeadlineSeconds = min(e.DeadlineSeconds, int(settings.EffectDeadline/time.Second))
		}
		e.Approval = strings.ReplaceAll(e.Approval, "{threshold}", strconv.FormatInt(settings.ApprovalThreshold, 10))
		p.Operations[e.Type] = e
	}
	return p
}
