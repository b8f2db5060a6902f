package server_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
)

func TestARead(t *testing.T) {
	t.Run("is answered to a caller that has closed its side of the connection", func(t *testing.T) {
		s := start(t, func(e *echo.Echo) {
			e.GET("/v1/slow", func(c echo.Context) error {
				select {
				case <-c.Request().Context().Done():
					return c.Request().Context().Err()
				case <-time.After(200 * time.Millisecond): // net/http has noticed by then
					return c.String(http.StatusOK, "done")
				}
			})
		})
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("GET /v1/slow HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer demo-agent\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%d, want 200", response.StatusCode)
		}
	})
	t.Run("has a deadline of its own, and a write has none", func(t *testing.T) {
		deadlines := make(chan bool, 2)
		handler := func(c echo.Context) error {
			_, bounded := c.Request().Context().Deadline()
			deadlines <- bounded
			return c.NoContent(http.StatusNoContent)
		}
		s := start(t, func(e *echo.Echo) { e.GET("/v1/x", handler); e.POST("/v1/x", handler) })
		for method, want := range map[string]bool{"GET": true, "POST": false} {
			request, err := http.NewRequestWithContext(context.Background(), method, "http://"+s.Addr()+"/v1/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer demo-agent")
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if got := <-deadlines; got != want {
				t.Errorf("%s: bounded %t, want %t", method, got, want)
			}
		}
	})
}
