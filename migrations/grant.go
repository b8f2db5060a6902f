package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/einmal/einmal/pkg/database"
)

// granted is what a service may do to tables that are not like the others: what has happened is only ever added to.
var granted = map[string]string{
	"events":            "SELECT, INSERT",
	"segments":          "SELECT, INSERT",
	"audit_checkpoints": "SELECT, INSERT",
	"markers":           "SELECT, INSERT, DELETE",
	"leaves":            "SELECT", // views
	"unsealed":          "SELECT",
	"audit_tree":        "SELECT, UPDATE",
	"installation":      "SELECT, UPDATE (forgotten_until)",
}

// grantedOtherwise is what it may do to all others but the version tables, which it reads.
const grantedOtherwise = "SELECT, INSERT, UPDATE, DELETE"

// Grant lets a role do what a service does to the tables that there are, and no more: it can neither change what has happened nor take it away.
// Once more after further migrations it adds theirs. Only PostgreSQL has roles.
func Grant(ctx context.Context, db *database.DB, role string) error {
	if db.Kind() != database.Postgres {
		return errors.New("grant: SQLite has no roles; triggers refuse changes of events there")
	}
	tables, err := tablesFor(ctx, db, role)
	if err != nil {
		return fmt.Errorf("grant: %w", err)
	}
	to := pgx.Identifier{role}.Sanitize()
	tx, err := db.SQL().BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("grant: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after the commit there is nothing to roll back
	for _, table := range tables {
		privileges, special := granted[table.name]
		switch {
		case strings.HasPrefix(table.name, "schema_"):
			privileges = "SELECT"
		case !special:
			privileges = grantedOtherwise
		}
		on := pgx.Identifier{table.schema, table.name}.Sanitize()
		for _, statement := range []string{
			"GRANT USAGE ON SCHEMA " + pgx.Identifier{table.schema}.Sanitize() + " TO " + to,
			"REVOKE ALL ON " + on + " FROM " + to,
			"GRANT " + privileges + " ON " + on + " TO " + to,
		} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("grant: %w in %s", err, statement)
			}
		}
	}
	return tx.Commit()
}

type table struct{ schema, name string }

// tablesFor lists the tables and views, and refuses a role to which nothing can be refused.
func tablesFor(ctx context.Context, db *database.DB, role string) ([]table, error) {
	var above bool
	err := db.SQL().QueryRowContext(ctx, `SELECT r.rolsuper OR EXISTS (SELECT 1 FROM pg_tables t WHERE t.schemaname = current_schema()
			AND pg_has_role(r.rolname, t.tableowner, 'MEMBER')) FROM pg_roles r WHERE r.rolname = $1`, role).Scan(&above)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("there is no role %q; CREATE ROLE %s LOGIN PASSWORD '…' makes one", role, pgx.Identifier{role}.Sanitize())
	case err != nil:
		return nil, err
	case above:
		return nil, fmt.Errorf("the role %q owns the tables, or is one that does, or a superuser: nothing can be refused to it; services must connect as another", role)
	}
	rows, err := db.SQL().QueryContext(ctx, `SELECT schemaname, tablename FROM pg_tables WHERE schemaname = current_schema()
		UNION ALL SELECT schemaname, viewname FROM pg_views WHERE schemaname = current_schema() ORDER BY 2`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var tables []table
	for rows.Next() {
		var t table
		if err := rows.Scan(&t.schema, &t.name); err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	return tables, rows.Err()
}
