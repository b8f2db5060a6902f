package deployments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
)

// environmentRow is a row of environments.
type environmentRow struct {
	AccountID        string `gorm:"primaryKey"`
	Name             string `gorm:"primaryKey"`
	Position         string
	ApprovalRequired bool
	Version          int64
	Arrivals         int64
	Holder           string
	HeldSince        *time.Time
	Token            int64
	Floor            int64
	CreatedAt        time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt        time.Time `gorm:"autoUpdateTime:false"`
}

func (environmentRow) TableName() string { return "environments" }

// declare inserts an environment and reports whether it did: not if it is there.
func (s store) declare(tx database.Tx, account, environment string, approvalRequired bool) (declared bool, err error) {
	insert := tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "account_id"}, {Name: "name"}}, DoNothing: true}).Create(&environmentRow{
		AccountID: account, Name: environment, Position: idempotency.NewID("env", tx.Now), ApprovalRequired: approvalRequired, Version: firstVersion,
		CreatedAt: tx.Now, UpdatedAt: tx.Now,
	})
	if insert.Error != nil {
		return false, fmt.Errorf("declare environment: %w", insert.Error)
	}
	return insert.RowsAffected == 1, nil
}

// protect says whether deployments to an environment need a person's yes.
func (s store) protect(tx database.Tx, account, environment string, approvalRequired bool) error {
	err := tx.Exec("UPDATE environments SET approval_required = ?, updated_at = ? WHERE account_id = ? AND name = ?",
		approvalRequired, tx.Now, account, environment).Error
	if err != nil {
		return fmt.Errorf("protect environment: %w", err)
	}
	return nil
}

// enter counts a deployment that comes to an environment, and returns that as it is then, or errNotFound. Until tx ends nobody else
// comes, and nobody leaves the lock.
func (s store) enter(tx database.Tx, account, environment string) (Environment, error) {
	update := tx.Exec("UPDATE environments SET arrivals = arrivals + 1 WHERE account_id = ? AND name = ?", account, environment)
	if update.Error != nil {
		return Environment{}, fmt.Errorf("enter environment: %w", update.Error)
	}
	if update.RowsAffected == 0 {
		return Environment{}, errNotFound
	}
	return s.environment(tx.DB, account, environment)
}

// hold gives a free environment to a deployment.
func (s store) hold(tx database.Tx, d Deployment) error {
	update := tx.Exec("UPDATE environments SET holder = ?, held_since = ?, updated_at = ? WHERE account_id = ? AND name = ? AND holder = ''",
		d.ID, tx.Now, tx.Now, d.AccountID, d.Environment)
	switch {
	case update.Error != nil:
		return fmt.Errorf("hold environment: %w", update.Error)
	case update.RowsAffected != 1:
		return fmt.Errorf("hold environment: %s is not free", d.Environment)
	}
	if !d.Waiting {
		return nil
	}
	return s.change(tx, "leave queue", "waiting = ?", d, false)
}

// leave takes an environment from the deployment that holds it, and reports whether it did. What was sent may have changed it, which
// is a new version.
func (s store) leave(tx database.Tx, d Deployment) (bool, error) {
	sent := 0
	if d.FencingToken > 0 {
		sent = 1
	}
	update := tx.Exec("UPDATE environments SET holder = '', held_since = NULL, version = version + ?, updated_at = ? WHERE account_id = ? AND name = ? AND holder = ?",
		sent, tx.Now, d.AccountID, d.Environment, d.ID)
	if update.Error != nil {
		return false, fmt.Errorf("leave environment: %w", update.Error)
	}
	return update.RowsAffected == 1, nil
}

// draw returns a fencing token for a deployment, higher than any before, or errNotHolder.
func (s store) draw(tx database.Tx, d Deployment) (token int64, err error) {
	update := tx.Exec("UPDATE environments SET token = token + 1 WHERE account_id = ? AND name = ? AND holder = ?", d.AccountID, d.Environment, d.ID)
	switch {
	case update.Error != nil:
		return 0, fmt.Errorf("draw token: %w", update.Error)
	case update.RowsAffected != 1:
		return 0, fmt.Errorf("draw token: %s: %w", d.ID, errNotHolder)
	}
	env, err := s.environment(tx.DB, d.AccountID, d.Environment)
	if err != nil {
		return 0, err
	}
	return env.Token, s.drawn(tx, d, env.Token)
}

// floor keeps what the cluster says of the tokens that it takes. Neither the floor nor the token ever sinks.
func (s store) floor(tx database.Tx, d Deployment, floor int64) error {
	err := tx.Exec(`UPDATE environments SET floor = ?, token = CASE WHEN token < ? THEN ? ELSE token END
		WHERE account_id = ? AND name = ? AND floor < ?`, floor, floor, floor, d.AccountID, d.Environment, floor).Error
	if err != nil {
		return fmt.Errorf("learn floor: %w", err)
	}
	return nil
}

// live makes a deployment the live release of its service.
func (s store) live(tx database.Tx, d Deployment) error {
	err := tx.Exec(`INSERT INTO releases (account_id, environment, service, deployment_id, artifact, since) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (account_id, environment, service) DO UPDATE SET deployment_id = excluded.deployment_id, artifact = excluded.artifact, since = excluded.since`,
		d.AccountID, d.Environment, d.Service, d.ID, d.Artifact, tx.Now).Error
	if err != nil {
		return fmt.Errorf("note release: %w", err)
	}
	return nil
}

// release reads what is live of a service, or errNotFound.
func (s store) release(tx database.Tx, account, environment, service string) (Release, error) {
	var found []Release
	err := tx.Table("releases").Select("service, artifact, deployment_id, since").
		Where("account_id = ? AND environment = ? AND service = ?", account, environment, service).Limit(1).Find(&found).Error
	switch {
	case err != nil:
		return Release{}, fmt.Errorf("read release: %w", err)
	case len(found) == 0:
		return Release{}, errNotFound
	}
	return found[0], nil
}

// environment reads one environment without what its resource adds, or errNotFound.
func (s store) environment(db *gorm.DB, account, environment string) (Environment, error) {
	found, err := readEnvironments(db.Where("account_id = ? AND name = ?", account, environment).Limit(1))
	switch {
	case err != nil:
		return Environment{}, err
	case len(found) == 0:
		return Environment{}, errNotFound
	}
	return found[0], nil
}

// listEnvironments reads up to limit environments, newest first, that come after a position (empty: all).
func (s store) listEnvironments(ctx context.Context, account, before string, limit int) ([]Environment, error) {
	var found []Environment
	err := s.db.Snapshot(ctx, func(read *gorm.DB) (err error) {
		query := read.Where("account_id = ?", account)
		if before != "" {
			query = query.Where("position < ?", before)
		}
		if found, err = readEnvironments(query.Order("position DESC").Limit(limit)); err != nil {
			return err
		}
		for i := range found {
			if found[i], err = s.fill(read, found[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// fill reads what the resource of an environment tells beside its row.
func (s store) fill(db *gorm.DB, env Environment) (Environment, error) {
	err := db.Table("releases").Select("service, artifact, deployment_id, since").
		Where("account_id = ? AND environment = ?", env.AccountID, env.Name).Order("service").Find(&env.Releases).Error
	if err != nil {
		return env, database.Classify(fmt.Errorf("read releases: %w", err))
	}
	if env.locked() {
		holding, err := s.byID(db, env.AccountID, env.Holder)
		switch {
		case err == nil:
			env.Holding = &holding
		case !errors.Is(err, errNotFound):
			return env, err
		}
	}
	env.Queue, err = read(waiting(db, env.AccountID, env.Name))
	return env, err
}

func readEnvironments(query *gorm.DB) ([]Environment, error) {
	var rows []environmentRow
	if err := query.Find(&rows).Error; err != nil {
		return nil, database.Classify(fmt.Errorf("read environments: %w", err))
	}
	environments := make([]Environment, len(rows))
	for i, r := range rows {
		environments[i] = Environment{
			AccountID: r.AccountID, Name: r.Name, Position: r.Position, ApprovalRequired: r.ApprovalRequired, Version: r.Version, Arrivals: r.Arrivals,
			Holder: r.Holder, HeldSince: r.HeldSince, Token: r.Token, Floor: r.Floor, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		}
	}
	return environments, nil
}
