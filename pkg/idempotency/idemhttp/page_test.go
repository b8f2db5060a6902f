package idemhttp_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
)

// TestWritePage walks a list of large resources as a client does.
func TestWritePage(t *testing.T) {
	t.Run("ends a page early that would grow beyond a few megabytes, and its cursor goes on from there", func(t *testing.T) {
		const rows, size = 60, 500_000
		var ids []string
		for i := rows; i > 0; i-- {
			ids = append(ids, fmt.Sprintf("id_%02d", i))
		}
		most, reading := 0, 0
		fetch := func(before string, limit int) ([]string, error) {
			left := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return before != "" && id >= before })
			left = left[:min(limit, len(left))]
			reading += len(left)
			most = max(most, reading)
			return left, nil
		}
		before, seen, pages := "", []string{}, 0
		for {
			reading = 0
			recorder := httptest.NewRecorder()
			c := echo.New().NewContext(httptest.NewRequest("GET", "/", nil), recorder)
			err := idemhttp.WritePage(c, idemhttp.Page{Before: before, Limit: 200}, fetch, func(id string) (string, any) {
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
		if most > 20 {
			t.Errorf("read %d rows of half a megabyte for a page of four", most)
		}
		if strings.Join(seen, " ") != strings.Join(ids, " ") || pages < 2 {
			t.Fatalf("saw %v in %d pages, want %v in several", seen, pages, ids)
		}
	})
}
