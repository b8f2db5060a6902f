package main

import (
	"context"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/database"
)

// service is what every role that stays is to its process. Which process that is, with others or alone, is nothing it knows of.
type service interface {
	Listen(ctx context.Context) error
	Addr() string
	Serve(ctx context.Context) error
}

// serve opens the database of a service, migrates it if it is told to, and serves until ctx ends. listening is called with the
// service's address when that is taken: connections wait from then on, and unless it returns nil they are never answered.
func serve(ctx context.Context, name, databaseURL string, migrate bool, make func(db *database.DB) (service, error), listening func(address string) error) error {
	db, err := database.Open(ctx, databaseURL, database.Options{})
	if err != nil {
		return err
	}
	defer db.Close()

	if migrate {
		if err := migrations.Up(ctx, db, name); err != nil {
			return err
		}
	}
	s, err := make(db)
	if err != nil {
		return err
	}
	if err := s.Listen(ctx); err != nil {
		return err
	}
	if err := listening(s.Addr()); err != nil {
		return err
	}
	return s.Serve(ctx)
}

// alone is for a process that is only this service: nobody else waits for its address.
func alone(string) error { return nil }
