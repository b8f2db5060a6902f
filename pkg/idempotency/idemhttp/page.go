package idemhttp

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// Page is a part of a list: what comes after a cursor.
type Page struct {
	Before string // the id before which the part begins, newest first; empty at the beginning
	Limit  int
}

const (
	defaultLimit = 50
	maxLimit     = 200 // of small resources: some 100 KiB
)

// WritePage answers with a page of rows that were read with a limit of page.Limit+1: the one too many says that there is more.
func WritePage[R any](c echo.Context, page Page, rows []R, item func(R) (id string, resource any)) error {
	list := struct {
		Items      []any  `json:"items"`
		NextCursor string `json:"next_cursor,omitzero"`
	}{Items: []any{}}
	for i, row := range rows {
		if i == page.Limit {
			last, _ := item(rows[i-1])
			list.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(last))
			break
		}
		_, resource := item(row)
		list.Items = append(list.Items, resource)
	}
	return writeJSON(c, http.StatusOK, list)
}

// readCursor is the id that WritePage put into a cursor.
func readCursor(text string) (id string, ok bool) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	visible := !strings.ContainsFunc(string(decoded), func(r rune) bool { return r < '!' || r > '~' })
	return string(decoded), err == nil && visible
}
