package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server"
)

// A service brings its routes, each with its guard; who is calling, refusals, health and leaving in order are done.
func Example() {
	config := server.Config{Listen: "127.0.0.1:0", ShutdownGrace: time.Second}
	s, err := server.New(config, server.Service{Name: "tickets", Log: config.Logger(io.Discard)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	s.Echo().GET("/v1/tickets/:id", func(c echo.Context) error {
		if c.Param("id") != "tkt_1" {
			return problem.New(problem.NotFound, "No ticket "+c.Param("id")+".")
		}
		return c.String(http.StatusOK, "a ticket of "+server.PrincipalOf(c).Account)
	}, server.Require(server.Readers...))

	if err := s.Listen(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	left := make(chan error)
	go func() { left <- s.Serve(ctx) }()

	get := func(path, token string) {
		r, _ := http.NewRequest(http.MethodGet, "http://"+s.Addr()+path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer resp.Body.Close()
		fmt.Println(resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	get("/v1/tickets/tkt_1", "demo-agent")
	get("/v1/tickets/tkt_2", "demo-agent")
	get("/v1/nothing", "stranger")
	stop()
	fmt.Println("left:", <-left)
	// Output:
	// 200 text/plain; charset=UTF-8
	// 404 application/problem+json
	// 401 application/problem+json
	// left: <nil>
}
