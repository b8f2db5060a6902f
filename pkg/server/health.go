package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// Check is one thing without which a service cannot work. Run returns nil when it is there, and must respect its context.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
}

// checkTimeout bounds all checks of one probe together. Probes commonly give up after a second or more; a database that
// needs longer for a ping is not ready.
const checkTimeout = time.Second

func (s *Server) addHealth() {
	s.echo.GET("/healthz", s.healthz)
	s.echo.GET("/readyz", s.readyz)
	s.echo.GET("/metrics", s.metrics.serve(s.registry))
}

// healthz says that the process lives. It asks nothing: restarting a process does not bring its database back.
func (s *Server) healthz(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]string{"status": "ok"})
}

// readyz says whether to send requests here: 200, or 503 with the names of the checks that fail. Why they fail is in the log,
// as everybody can ask.
func (s *Server) readyz(c echo.Context) error {
	if s.draining.Load() {
		return c.JSON(http.StatusServiceUnavailable, readiness{Status: "draining"})
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), checkTimeout)
	defer cancel()
	var failing []string
	for _, check := range s.service.Checks {
		if err := check.Run(ctx); err != nil {
			failing = append(failing, check.Name)
			s.service.Log.LogAttrs(ctx, slog.LevelWarn, "not ready", slog.String("service", s.service.Name),
				slog.String("check", check.Name), slog.String("error", err.Error()))
		}
	}
	if failing != nil {
		return c.JSON(http.StatusServiceUnavailable, readiness{"not ready", failing})
	}
	return c.JSON(http.StatusOK, readiness{Status: "ready"})
}

type readiness struct {
	Status  string   `json:"status"`
	Failing []string `json:"failing,omitempty"`
}
