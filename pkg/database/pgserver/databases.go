package pgserver

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// CreateDatabase makes a database, as a copy of template unless that is empty. Nobody may be connected to the template meanwhile.
func (s *Server) CreateDatabase(ctx context.Context, name, template string) error {
	statement := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize()
	if template != "" {
		statement += " TEMPLATE " + pgx.Identifier{template}.Sanitize()
	}
	return s.administer(ctx, "create database "+name, statement)
}

// DropDatabase removes a database and cuts the connections to it. It is no error that there is none.
func (s *Server) DropDatabase(ctx context.Context, name string) error {
	return s.administer(ctx, "drop database "+name, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
}

// administer runs a statement on a connection of its own: these are rare, and no pool is left behind to keep a database from being copied.
func (s *Server) administer(ctx context.Context, what, statement string) error {
	conn, err := pgconn.Connect(ctx, s.home.String())
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement).ReadAll(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
