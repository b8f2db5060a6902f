package tickets_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/einmal/einmal/migrations"
	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/server"
	"github.com/einmal/einmal/services/tickets"
)

// Two monitors see one event, each with a key of its own, and the second sends its report again: one ticket.
func Example() {
	url, stop := serve()
	defer stop()
	for _, key := range []string{"report-of-monitor-1", "report-of-monitor-2", "report-of-monitor-2"} {
		request, _ := http.NewRequest("POST", url+"/v1/tickets",
			strings.NewReader(`{"project": "ops", "title": "Disk full on db1", "source_event_id": "alert-4711"}`))
		request.Header.Set("Authorization", "Bearer demo-agent")
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", key)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			fmt.Println(err)
			return
		}
		var ticket struct{ Disposition string }
		_ = json.NewDecoder(answer.Body).Decode(&ticket)
		answer.Body.Close()
		fmt.Println(answer.StatusCode, ticket.Disposition, answer.Header.Get("Idempotency-Outcome"))
	}
	// Output:
	// 201 created executed
	// 200 existing executed
	// 200 existing replayed
}

// serve runs the service on a database of its own.
func serve() (url string, stop func()) {
	dir, err := os.MkdirTemp("", "tickets-")
	exitOn(err)
	ctx, cancel := context.WithCancel(context.Background())
	db, err := database.Open(ctx, "sqlite:"+filepath.Join(dir, "tickets.db"), database.Options{})
	exitOn(err)
	exitOn(migrations.Up(ctx, db, tickets.Name))
	service, err := tickets.New(tickets.Config{
		Config:   server.Config{Listen: "127.0.0.1:0", ShutdownGrace: time.Second},
		Settings: catalogue.Settings{WaitBudget: 2 * time.Second, ResponseRetention: 720 * time.Hour, TombstoneRetention: 9600 * time.Hour, ApprovalTTL: 30 * time.Minute, ApprovalThreshold: 10000, PurgeEvery: time.Minute, EffectDeadline: 24 * time.Hour},
		// No desk: tickets are not mirrored.
		ReconcileEvery: 2 * time.Second,
		AlertProject:   "alerts",
	}, tickets.Deps{DB: db, Log: slog.New(slog.DiscardHandler)})
	exitOn(err)
	exitOn(service.Listen(ctx))
	served := make(chan error)
	go func() { served <- service.Serve(ctx) }()
	return "http://" + service.Addr(), func() {
		cancel()
		exitOn(<-served)
		exitOn(db.Close())
		exitOn(os.RemoveAll(dir))
	}
}

func exitOn(err error) {
	if err != nil {
		panic(err)
	}
}
