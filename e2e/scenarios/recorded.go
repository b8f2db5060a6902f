package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/einmal/einmal/e2e/harness"
	"github.com/einmal/einmal/e2e/record"
)

// readsWithin bounds the reading of what a scenario has left, thousands of rows at most.
const readsWithin = 20 * time.Second

// recordAftermath notes what the simulators and the databases say now that the scenario is over, and ends the recording.
func (s *Stage) recordAftermath() {
	log := record.From(s.ctx)
	if log == nil {
		return
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), readsWithin) // the scenario's time may be up
	defer cancel()
	for _, place := range log.Read().Places {
		if place.Kind == record.Process && place.Name == "simulator" {
			log.World(askWorld(ctx, place.Address))
		}
	}
	s.lab.RecordRows(ctx)
}

// askWorld asks a simulator what arrived and what really happened.
func askWorld(ctx context.Context, address string) record.World {
	world := record.World{Address: address}
	get := func(path string, into any) error {
		answer := harness.Do(ctx, harness.Call{Base: "http://" + address, Method: http.MethodGet, Path: path})
		if answer.Err != nil || answer.Status != http.StatusOK {
			return fmt.Errorf("ask the simulator for %s: %v", path, answer)
		}
		return json.Unmarshal(answer.Body, into)
	}
	if err := errors.Join(get("/_calls", &world.Calls), get("/_ledger", &world.Ledger)); err != nil {
		world.Err = err.Error()
	}
	return world
}

// recordServer notes something that has happened to the PostgreSQL server as a whole.
func (s *Stage) recordServer(event record.Event, text string) {
	const server = "PostgreSQL server"
	log := record.From(s.ctx)
	log.Place(record.Place{Address: server, Kind: record.Store, Name: server})
	log.Mark(server, event, text)
}
