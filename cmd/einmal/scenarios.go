package main

import (
	"context"

	"github.com/einmal/einmal/e2e"
)

type scenariosCmd struct {
	Names    []string `arg:"" optional:"" name:"NAME" help:"Which ones; without a name all of them."`
	List     bool     `help:"Say what there is instead of running it."`
	Database string   `default:"sqlite" placeholder:"sqlite|postgres|URL" help:"postgres starts a private server; a URL names a server on which databases may be made and dropped."`
	JSON     bool     `name:"json" help:"Print the results as JSON."`
	Report   string   `placeholder:"FILE.html" help:"Write a report with what was recorded: one HTML file that needs nothing else."`
	AtOnce   int      `default:"3" placeholder:"N" help:"How many are played at the same time; most of their time they wait."`
	Seed     uint64   `default:"1" help:"What scenarios draw at random follows from it."`
}

func (s *scenariosCmd) Run(ctx context.Context, streams streams) error {
	results, err := e2e.Run(ctx, e2e.Options{
		Names: s.Names, List: s.List, Database: s.Database, JSON: s.JSON, Seed: s.Seed, AtOnce: max(1, s.AtOnce), Report: s.Report, Version: version(),
	}, streams.out)
	if err != nil {
		return err
	}
	return results.Err()
}
