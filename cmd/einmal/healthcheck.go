package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// healthcheckCmd asks the service beside it, in the same container and with the same settings, whether it is ready.
type healthcheckCmd struct {
	Listen string `env:"EINMAL_LISTEN" default:"127.0.0.1:8081" help:"Where the service listens."`
}

// healthcheckTimeout is below the time-out of the image's HEALTHCHECK, so that the reason is told.
const healthcheckTimeout = 2 * time.Second

func (h *healthcheckCmd) Run(ctx context.Context) error {
	host, port, err := net.SplitHostPort(h.Listen)
	if err != nil {
		return fmt.Errorf("EINMAL_LISTEN: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // it listens everywhere, so here too
	}
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", answer.Status)
	}
	return nil
}
