// Package migrations holds the schema: one tree of SQL files for each kind of database, and in it one for the tables
// that every service carries (shared) and one for each service. The files of the trees have the same names, number for
// number; a file that has landed is never edited.
//
//	{postgres,sqlite}/shared/NNNN_name.sql      operations, events, effects, reviews, the installation's name
//	{postgres,sqlite}/tickets/NNNN_name.sql     tickets, comments
//	{postgres,sqlite}/payments/NNNN_name.sql    orders, payments, refunds
//	{postgres,sqlite}/deployments/NNNN_name.sql environments, deployments, releases
//	{postgres,sqlite}/simulator/NNNN_name.sql   what is outside: its ledger, calls, faults
//
// Two trees meet in one database because a claim commits together with the domain rows. Each keeps its own version
// table, schema_shared and schema_<service>, so that neither has to know the other's numbers.
package migrations

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/pressly/goose/v3"

	"github.com/einmal/einmal/pkg/database"
)

//go:embed postgres sqlite
var files embed.FS

// Shared is the tree of the tables that every service carries: operations and events, and for who has effects outside
// the database, effects and reviews. A service of somebody else's, which
// keeps its own tables in its own way, asks for these alone.
const Shared = "shared"

// trees are what a database of a service consists of.
func trees(service string) []string {
	if service == Shared {
		return []string{Shared}
	}
	return []string{Shared, service}
}

// Up brings the database of a service to the newest version. Several processes may call it at once: each version is
// applied by exactly one of them, and none returns before it is there. A failed version leaves nothing of itself
// behind, earlier ones stay. A database that lacks nothing is only read.
func Up(ctx context.Context, db *database.DB, service string) error {
	if pending, err := Pending(ctx, db, service); err == nil && pending == 0 {
		return nil
	}
	return exclusively(ctx, db, func() error {
		for _, tree := range trees(service) {
			if err := up(ctx, db, tree); err != nil {
				return fmt.Errorf("migrate %s: %w", tree, err)
			}
		}
		return nil
	})
}

// Complete returns an error that says what to do unless the database of a service has the newest version.
func Complete(ctx context.Context, db *database.DB, service string) error {
	pending, err := Pending(ctx, db, service)
	if err != nil {
		return err
	}
	if pending > 0 {
		return fmt.Errorf("%d migrations of %s are pending; run einmal migrate", pending, service)
	}
	return nil
}

// Pending counts the versions that the database of a service still lacks, and only reads. A database that a newer
// release has migrated lacks none: a release runs before and after the migrations of its successor.
func Pending(ctx context.Context, db *database.DB, service string) (int, error) {
	all := 0
	for _, tree := range trees(service) {
		provider, err := open(db, tree)
		if err != nil {
			return 0, fmt.Errorf("look for migrations of %s: %w", tree, err)
		}
		pending, err := lacking(ctx, db, tree, provider)
		if err != nil {
			return 0, fmt.Errorf("look for pending migrations of %s: %w", tree, err)
		}
		all += pending
	}
	return all, nil
}

// lacking counts the versions of one tree that are not recorded. goose's own count would create the table it counts in.
func lacking(ctx context.Context, db *database.DB, tree string, provider *goose.Provider) (int, error) {
	if !db.Read(ctx).Migrator().HasTable(versions(tree)) {
		// An error looks the same to HasTable.
		return len(provider.ListSources()), db.Ping(ctx)
	}
	var applied []int64
	if err := db.Read(ctx).Table(versions(tree)).Pluck("version_id", &applied).Error; err != nil {
		return 0, database.Classify(err)
	}
	pending := 0
	for _, source := range provider.ListSources() {
		if !slices.Contains(applied, source.Version) {
			pending++
		}
	}
	return pending, nil
}

// patience is how many lock time-outs (2 s each by default) in a row a migrator waits for one that holds the lock, or for
// the ordinary traffic on a table it must change. After a minute somebody should look.
const patience = 30

// up applies one tree. That a version is applied once does not rest on the lock around it: the row that records a
// version commits with the version's own statements and is unique. Whoever loses that race rolls back, reads again and
// goes on.
func up(ctx context.Context, db *database.DB, tree string) error {
	provider, err := open(db, tree)
	if err != nil {
		return err
	}
	if _, err := provider.GetDBVersion(ctx); err != nil { // creates the table
		return err
	}
	unique := fmt.Sprintf("CREATE UNIQUE INDEX IF NOT EXISTS %[1]s_version ON %[1]s (version_id)", versions(tree))
	if _, err := db.SQL().ExecContext(ctx, unique); err != nil {
		return fmt.Errorf("make versions unique: %w", err)
	}
	pending, err := lacking(ctx, db, tree, provider)
	if err != nil {
		return err
	}
	for waited := 0; pending > 0; {
		_, failed := provider.Up(ctx)
		if failed == nil {
			return nil
		}
		left, err := lacking(ctx, db, tree, provider)
		switch {
		case err == nil && left < pending: // another process is applying them too
			pending = left
		case errors.Is(database.Classify(failed), database.ErrBusy) && waited < patience && ctx.Err() == nil:
			waited++
		default:
			return failed
		}
	}
	return nil
}

// open returns the provider of one tree in the dialect of db.
func open(db *database.DB, tree string) (*goose.Provider, error) {
	dialects := map[database.Kind]goose.Dialect{
		database.Postgres: goose.DialectPostgres,
		database.SQLite:   goose.DialectSQLite3,
	}
	dir, err := fs.Sub(files, path.Join(string(db.Kind()), tree))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialects[db.Kind()], db.SQL(), dir,
		goose.WithTableName(versions(tree)), goose.WithDisableGlobalRegistry(true))
}

func versions(tree string) string { return "schema_" + tree }
