package idemhttp

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

// Page is a part of a list: what comes after a cursor.
type Page struct {
	Before string // the id before which the part begins, newest first; empty at the beginning
	Limit  int
}

const (
	defaultLimit = 50
	maxLimit     = 200

	// maxPage is where a page ends early, in bytes: two hundred resources are some 100 KiB, unless their texts are at their limits.
	maxPage = 4 << 20
)

// firstRows is how many rows a page begins with, before it is known how large they are.
const firstRows = 16

// WritePage answers with a page of what fetch reads: up to limit rows, newest first, that come after the one named before. It is
// asked for a few, and then for as many as the page still has room for, so that memory holds a page and not two hundred rows at
// their limits. A page ends before its limit where it would grow beyond a few megabytes; its cursor goes on from there.
func WritePage[R any](c echo.Context, page Page, fetch func(before string, limit int) ([]R, error), item func(R) (id string, resource any)) error {
	list := struct {
		Items      []jsontext.Value `json:"items"`
		NextCursor string           `json:"next_cursor,omitzero"`
	}{Items: []jsontext.Value{}}
	size, last, want := 0, page.Before, firstRows
	for {
		want = min(want, page.Limit+1-len(list.Items)) // the one too many says that there is more
		rows, err := fetch(last, want)
		if err != nil {
			return err
		}
		for _, row := range rows {
			id, resource := item(row)
			body, err := Marshal(resource)
			if err != nil {
				return err
			}
			if size += len(body); len(list.Items) == page.Limit || len(list.Items) > 0 && size > maxPage {
				list.NextCursor = writeCursor(listOf(c), last)
				return writeJSON(c, http.StatusOK, list)
			}
			list.Items, last = append(list.Items, body), id
		}
		if len(rows) < want {
			return writeJSON(c, http.StatusOK, list)
		}
		average := size/len(list.Items) + 1
		want = (maxPage-size)/average + 1
	}
}

// listOf names the list that a request reads. A cursor holds it: an id of another list would be before everything or after it, and
// a page that is empty, or whole, would be taken for an answer.
func listOf(c echo.Context) string { return c.Request().URL.Path }

func writeCursor(list, last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + " " + last))
}

// readCursor is the id that WritePage put into a cursor of that list.
func readCursor(list, text string) (id string, ok bool) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	id, same := strings.CutPrefix(string(decoded), list+" ")
	visible := !strings.ContainsFunc(id, func(r rune) bool { return r < '!' || r > '~' })
	return id, err == nil && same && id != "" && visible
}
