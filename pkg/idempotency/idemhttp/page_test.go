package idemhttp_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
)

// TestWritePage walks a list of large resources as a client does.
func TestWritePage(t *testing.T) {
	t.Run("ends a page early that would grow beyond a few megabytes, and its cursor goes on from there", func(t *testing.T) {
		const rows, size = 20, 500_000
		var ids []string
		for i := rows; i > 0; i-- {
			ids = append(ids, fmt.Sprintf("id_%02d", i))
		}
		before, seen, pages := "", []string{}, 0
		for {
			left := ids
			for before != "" && left[0] >= before {
				if left = left[1:]; len(left) == 0 {
					break
				}
			}
			recorder := httptest.NewRecorder()
			c := echo.New().NewContext(httptest.NewRequest("GET", "/", nil), recorder)
			err := idemhttp.WritePage(c, idemhttp.Page{Before: before, Limit: 200}, left, func(id string) (string, any) {
				return id, map[string]string{"id": id, "text": strings.Repeat("x", size)}
			})
			if err != nil {
				t.Fatal(err)
			}
			var page struct {
				Items []struct{ ID string }
				Next  string `json:"next_cursor"`
			}
			if err := json.Unmarshal(recorder.Body.Bytes(), &page); err != nil || recorder.Body.Len() > 5<<20 {
				t.Fatalf("a page of %d bytes, error %v", recorder.Body.Len(), err)
			}
			for _, item := range page.Items {
				seen = append(seen, item.ID)
			}
			pages++
			if page.Next == "" {
				break
			}
			before = seen[len(seen)-1]
		}
		if strings.Join(seen, " ") != strings.Join(ids, " ") || pages < 2 {
			t.Fatalf("saw %v in %d pages, want %v in several", seen, pages, ids)
		}
	})
}
