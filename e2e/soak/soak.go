package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/einmal/einmal/e2e/harness"
)

const (
	agent = "demo-agent"
	hook  = "/v1/hooks/alertmanager"

	// interval is how often an Alertmanager looks at a group, and reminds of it: some minutes in earnest.
	interval = 3 * time.Second

	// settleWithin is how long what was told last may take to arrive: some intervals, and what Alertmanager waits for an answer that never comes.
	settleWithin = 2 * time.Minute
)

// soak is one run.
type soak struct {
	duration, killEvery time.Duration
	alerts              int
	database            string
	seed                uint64

	db        *harness.Database
	service   *harness.Service
	receivers []*harness.Receiver
	monitors  []*harness.Alertmanager
	kills     int
}

func (s *soak) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "einmal-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := harness.Build(ctx, dir)
	if err != nil {
		return err
	}
	lab, err := harness.New(ctx, harness.Options{Binary: binary, Database: s.database})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	if err := s.start(ctx, lab); err != nil {
		return err
	}
	fmt.Printf("%d alerts come and go for %s on %s; the service is killed every %s\n", s.alerts, s.duration, lab.Kind, s.killEvery)

	working, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	agents := newAgents(s.service.URL())
	workers.Go(func() { agents.work(working) })
	flapping := newFlapping(s.monitors, s.alerts, rand.New(rand.NewPCG(s.seed, 0)))
	told := make(chan error, 1)
	workers.Go(func() { told <- flapping.run(working, s.duration) })
	err = s.killUntil(ctx, told)
	if err == nil {
		err = s.await(ctx, agents, flapping)
	}
	cancel()
	workers.Wait()
	if err != nil {
		return err
	}
	return s.judge(ctx, agents, flapping)
}

// start starts the service, two receivers in front of it, and the pair of Alertmanagers.
func (s *soak) start(ctx context.Context, lab *harness.Lab) (err error) {
	if s.db, err = lab.NewDatabase(ctx); err != nil {
		return err
	}
	if s.service, err = lab.Serve(ctx, harness.Settings{Role: "tickets", DatabaseURL: s.db.URL}); err != nil {
		return err
	}
	var peer *harness.Alertmanager
	for range 2 {
		receiver, err := harness.NewReceiver(s.service.URL())
		if err != nil {
			return err
		}
		s.receivers = append(s.receivers, receiver)
		peer, err = lab.Alertmanager(ctx, harness.AlertmanagerSettings{
			Receiver: receiver.URL() + hook, Token: agent, GroupBy: "alertname", Peer: peer, Interval: interval,
		})
		if err != nil {
			return err
		}
		s.monitors = append(s.monitors, peer)
	}
	return nil
}

// killUntil kills the service again and again until everything was told.
func (s *soak) killUntil(ctx context.Context, told <-chan error) error {
	kill := time.NewTicker(s.killEvery)
	defer kill.Stop()
	for {
		select {
		case err := <-told:
			return err
		case <-kill.C:
			if err := s.service.Kill(); err != nil {
				return err
			}
			s.kills++
			if err := s.service.Start(ctx); err != nil {
				return err
			}
			fmt.Printf("%s killed %d times, %d notifications\n", time.Now().Format(time.TimeOnly), s.kills, len(s.receivers[0].Notifications())+len(s.receivers[1].Notifications()))
		}
	}
}

// await waits until everything that was told has arrived, and everything was commented on.
func (s *soak) await(ctx context.Context, agents *agents, flapping *flapping) error {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	poll := time.NewTicker(interval)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil // what has not arrived is told by judge
		case <-poll.C:
		}
		counted, err := s.count(ctx)
		if err != nil {
			return err
		}
		if counted.open == flapping.firing() && agents.done() == counted.tickets {
			return nil
		}
	}
}
