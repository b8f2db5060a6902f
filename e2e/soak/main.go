// Command soak lets two real Alertmanagers of a cluster tell the tickets service of alerts that come and go, for minutes, while the service is killed again and
// again and agents comment on what they find. In the end each alert that was told of must have its one ticket, in the status that it has come to, with its one comment.
//
//	go run ./e2e/soak -duration 10m
//	go run ./e2e/soak -duration 2m -database postgres
//
// It needs prometheus-alertmanager. The exit status is 0 if everything was as it must be.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	var s soak
	flag.DurationVar(&s.duration, "duration", 10*time.Minute, "how long alerts come and go")
	flag.DurationVar(&s.killEvery, "kill-every", 20*time.Second, "how often the service is killed")
	flag.IntVar(&s.alerts, "alerts", 200, "how many alerts there are")
	flag.StringVar(&s.database, "database", "sqlite", "sqlite, postgres, or the URL of a PostgreSQL database")
	flag.Uint64Var(&s.seed, "seed", 1, "what is drawn at random follows from it")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		stop()
		os.Exit(1)
	}
}
