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

// WritePage answers with a page of rows that were read with a limit of page.Limit+1: the one too many says that there is more. A
// page ends before its limit where it would grow beyond a few megabytes; its cursor goes on from there.
func WritePage[R any](c echo.Context, page Page, rows []R, item func(R) (id string, resource any)) error {
	list := struct {
		Items      []jsontext.Value `json:"items"`
		NextCursor string           `json:"next_cursor,omitzero"`
	}{Items: []jsontext.Value{}}
	size, last := 0, ""
	for i, row := range rows {
		id, resource := item(row)
		body, err := Marshal(resource)
		if err != nil {
			return err
		}
		if size += len(body); i == page.Limit || i > 0 && size > maxPage {
			list.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(last))
			break
		}
		list.Items, last = append(list.Items, body), id
	}
	return writeJSON(c, http.StatusOK, list)
}

// readCursor is the id that WritePage put into a cursor.
func readCursor(text string) (id string, ok bool) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	visible := !strings.ContainsFunc(string(decoded), func(r rune) bool { return r < '!' || r > '~' })
	return string(decoded), err == nil && visible
}
