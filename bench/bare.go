package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
)

// bare is the service that everything is compared with: what a team has before it thinks about retries. The same server,
// authentication, reading of the request (its key is read and ignored), pool and settings, the same row and the same answer; but
// the row is one autocommitted insert, and whoever sends twice gets two tickets.
type bare struct {
	db *database.DB
}

// startBare starts it. On SQLite its pool has one connection, which is what serves a single writer best; the tickets service
// queues its writers itself.
func startBare(ctx context.Context, databaseURL string) (*target, error) {
	var options database.Options
	if strings.HasPrefix(databaseURL, "sqlite:") {
		options.MaxConns = 1
	}
	return start(ctx, "bare", databaseURL, options, func(db *database.DB) (listener, error) {
		config, err := defaults()
		if err != nil {
			return nil, err
		}
		s, err := server.New(config.Config, server.Service{Name: "bare", Log: config.Logger(io.Discard)})
		if err != nil {
			return nil, err
		}
		s.Echo().POST("/v1/tickets", bare{db}.createTicket, server.Require(server.Agent, server.Operator))
		return s, nil
	})
}

// createTicket answers POST /v1/tickets.
func (b bare) createTicket(c echo.Context) error {
	p := server.PrincipalOf(c)
	call, err := idemhttp.Begin(c, idemhttp.Caller{Account: p.Account, Principal: p.Name})
	if err != nil {
		return err
	}
	command := &createTicket{Priority: "normal", Labels: map[string]string{}}
	if err := call.Decode(command); err != nil {
		return err
	}
	labels, err := json.Marshal(command.Labels, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("marshal labels: %w", err)
	}
	now := b.db.Now()
	row := ticketRow{
		AccountID: p.Account, ID: idempotency.NewID("tkt", now), Project: command.Project, Title: command.Title,
		Description: command.Description, Priority: command.Priority, Labels: string(labels), SourceEventID: command.SourceEventID,
		Status: "open", Version: 1, CreatedAt: now, UpdatedAt: now,
	}
	if err := b.db.Read(c.Request().Context()).Create(&row).Error; err != nil { // outside a transaction: autocommitted
		return database.Classify(fmt.Errorf("insert ticket: %w", err))
	}
	body, err := idemhttp.Marshal(creation{
		ID: row.ID, Project: row.Project, Title: row.Title, Description: row.Description, Priority: row.Priority, Labels: command.Labels,
		SourceEventID: row.SourceEventID, Status: row.Status, Version: row.Version, CreatedAt: idemhttp.Time(now), UpdatedAt: idemhttp.Time(now),
		Disposition: "created",
	})
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, "/v1/tickets/"+row.ID)
	return c.JSONBlob(http.StatusCreated, body)
}

// createTicket is the command of the tickets service. Its rules are left out: the bench sends only what obeys them, and checking
// them is nothing that exactly once costs.
type createTicket struct {
	Project       string            `json:"project"`
	Title         string            `json:"title"`
	Description   string            `json:"description"`
	Priority      string            `json:"priority"`
	Labels        map[string]string `json:"labels"`
	SourceEventID *string           `json:"source_event_id"`
}

func (*createTicket) Validate() []problem.Violation { return nil }

// ticketRow is the row of the tickets service.
type ticketRow struct {
	AccountID     string `gorm:"primaryKey"`
	ID            string `gorm:"primaryKey"`
	Project       string
	Title         string
	Description   string
	Priority      string
	Labels        string
	SourceEventID *string
	Status        string
	Version       int64
	CommentCount  int64
	OperationID   string
	CreatedAt     time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt     time.Time `gorm:"autoUpdateTime:false"`
	ClosedAt      *time.Time
}

func (ticketRow) TableName() string { return "tickets" }

// creation is the answer of the tickets service.
type creation struct {
	ID            string            `json:"id"`
	Project       string            `json:"project"`
	Title         string            `json:"title"`
	Description   string            `json:"description"`
	Priority      string            `json:"priority"`
	Labels        map[string]string `json:"labels"`
	SourceEventID *string           `json:"source_event_id,omitzero"`
	Status        string            `json:"status"`
	Version       int64             `json:"version"`
	CommentCount  int64             `json:"comment_count"`
	CreatedAt     idemhttp.Time     `json:"created_at"`
	UpdatedAt     idemhttp.Time     `json:"updated_at"`
	ClosedAt      *idemhttp.Time    `json:"closed_at,omitzero"`
	Disposition   string            `json:"disposition"`
}
