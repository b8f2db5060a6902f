package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"
)

// Run listens and serves until ctx ends; see Listen and Serve.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Listen(ctx); err != nil {
		return err
	}
	return s.Serve(ctx)
}

// Listen takes the address. After it Addr is known and connections wait until Serve.
func (s *Server) Listen(ctx context.Context) error {
	var network net.ListenConfig
	listener, err := network.Listen(ctx, "tcp", s.config.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen for %s: another process listens on %s; end it, or set %s to a free address: %w", s.service.Name, s.config.Listen, s.listenSetting(), err)
	}
	if err != nil {
		return fmt.Errorf("listen for %s on %s %s: %w", s.service.Name, s.listenSetting(), s.config.Listen, err)
	}
	s.listener = unreadListener{listener.(*net.TCPListener)} // the type that "tcp" gives
	return nil
}

func (s *Server) listenSetting() string { return cmp.Or(s.config.ListenSetting, "EINMAL_LISTEN") }

// Addr is the address Listen took, "host:port": with port 0, the one that was free.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Serve answers until ctx ends, and then leaves in order: /readyz becomes false, new connections are refused (after
// DrainDelay), requests in progress end within ShutdownGrace, Serve returns nil. Requests that do not end in time are cut,
// and the error says how many. A request's context does not end with ctx: a shutdown finishes work, it does not cancel it.
func (s *Server) Serve(ctx context.Context) error {
	log := s.service.Log.With(slog.String("service", s.service.Name))
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	log.LogAttrs(ctx, slog.LevelInfo, "listening", slog.String("address", s.Addr()))
	if s.demo {
		log.LogAttrs(ctx, slog.LevelWarn, "accepting the published demo tokens; set EINMAL_TOKENS_FILE for anything but a trial")
	}

	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", s.service.Name, err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	log.LogAttrs(ctx, slog.LevelInfo, "draining", slog.Int64("in_flight", s.inFlight.Load()))
	<-time.After(s.config.DrainDelay)
	close(s.leaving)

	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.ShutdownGrace)
	defer cancel()
	if err := s.http.Shutdown(grace); err != nil {
		cut := s.inFlight.Load()
		_ = s.http.Close() // what is wrong is said below
		return fmt.Errorf("shut down %s: cut %d still in progress after EINMAL_SHUTDOWN_GRACE %s: %w", s.service.Name, cut, s.config.ShutdownGrace, err)
	}
	<-served // it has closed the listener
	return nil
}
