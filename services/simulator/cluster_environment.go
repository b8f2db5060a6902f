package simulator

import (
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

// environment is what the cluster knows of an environment beside its rollouts.
type environment struct {
	Account     string
	Environment string
	Floor       int64 // the lowest token that is still taken
}

// lockEnvironment reads an environment and keeps everything else that would happen there waiting until tx ends.
func lockEnvironment(tx database.Tx, at place) (environment, error) {
	var e environment
	// The update changes nothing. It takes the row, as an insert that does nothing would not.
	err := tx.Raw(`INSERT INTO cluster_environments (account, environment, floor) VALUES (?, ?, 0)
		ON CONFLICT (account, environment) DO UPDATE SET environment = excluded.environment
		RETURNING *`, at.Account, at.Environment).Scan(&e).Error
	return e, err
}

// raise makes the floor at least so high. It never sinks.
func (e *environment) raise(tx database.Tx, floor int64) error {
	if floor <= e.Floor {
		return nil
	}
	e.Floor = floor
	return tx.Table("cluster_environments").Where("account = ? AND environment = ?", e.Account, e.Environment).Update("floor", floor).Error
}

// running is the rollout that goes on in the environment, or nil.
func (e environment) running(tx database.Tx) (*rollout, error) {
	var going []rollout
	err := e.rollouts(tx).Where("ends_at > ?", tx.Now).Order("id").Limit(1).Find(&going).Error
	if err != nil || len(going) == 0 {
		return nil, err
	}
	return &going[0], nil
}

// runs is the artifact of a service that runs now; empty: none, mixed: the last rollout has stopped half-way.
func (e environment) runs(tx database.Tx, service string) (string, error) {
	var last []rollout
	err := e.rollouts(tx).Where("service = ? AND ends_at <= ? AND runs <> ''", service, tx.Now).Order("id DESC").Limit(1).Find(&last).Error
	if err != nil || len(last) == 0 {
		return "", err
	}
	return last[0].Runs, nil
}

func (e environment) rollouts(tx database.Tx) *gorm.DB {
	return tx.Where("account = ? AND environment = ?", e.Account, e.Environment)
}

// rollout is a release on its way to an environment, or there.
type rollout struct {
	ID          string `gorm:"primaryKey"`
	Account     string
	Environment string
	Service     string
	Artifact    string // that was asked for
	Runs        string // that runs once it has ended; empty: what ran before it
	EffectKey   string
	Token       int64
	Ending      ending
	StartedAt   time.Time
	EndsAt      time.Time
}

// ending is how a rollout ends.
type ending string

const (
	rolledOut ending = "succeeded"
	failed    ending = "failed"  // it did not get well; what ran before runs
	partial   ending = "partial" // it stopped half-way: some of both run
	stopped   ending = "stopped" // somebody broke it off; what ran before runs

	// running and neverStarted are states beside how one ends.
	running      ending = "running"
	neverStarted ending = "never_started"
)

// mixed is what runs after a rollout that stopped half-way.
const mixed = "mixed"

func (r rollout) reference() string { return "rollout_" + r.ID }

func (r rollout) place() place { return place{r.Account, r.Environment} }

// state is what a rollout is at a time.
func (r rollout) state(now time.Time) ending {
	if r.EndsAt.After(now) {
		return running
	}
	return r.Ending
}

// status is a rollout as the cluster shows it.
type status struct {
	Reference   string     `json:"reference"`
	EffectKey   string     `json:"effect_key"`
	Account     string     `json:"account"`
	Environment string     `json:"environment"`
	Service     string     `json:"service"`
	Artifact    string     `json:"artifact"` // that was asked for
	State       ending     `json:"state"`
	Runs        string     `json:"runs,omitzero"` // of the service, now
	Token       int64      `json:"token"`
	Floor       int64      `json:"floor"` // of the environment
	StartedAt   time.Time  `json:"started_at"`
	EndedAt     *time.Time `json:"ended_at,omitzero"`
}

// status says how a rollout is now.
func (e environment) status(tx database.Tx, r rollout) (status, error) {
	runs, err := e.runs(tx, r.Service)
	if err != nil {
		return status{}, err
	}
	s := status{
		Reference: r.reference(), EffectKey: r.EffectKey, Account: r.Account, Environment: r.Environment, Service: r.Service, Artifact: r.Artifact,
		State: r.state(tx.Now), Runs: runs, Token: r.Token, Floor: e.Floor, StartedAt: r.StartedAt,
	}
	if s.State != running {
		s.EndedAt = &r.EndsAt
	}
	return s, nil
}
