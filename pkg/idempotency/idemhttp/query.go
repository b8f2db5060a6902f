package idemhttp

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/problem"
)

// Query reads the parameters of a list, as strictly as a body is read: one that is dropped or misunderstood makes the list longer,
// and who asks for the ticket of an event would take another for it. Ask for every parameter that there is, then for Err.
type Query struct {
	list       string
	values     url.Values
	known      []string
	violations []problem.Violation
}

// ReadQuery begins with the query of a request.
func ReadQuery(c echo.Context) *Query {
	values, err := url.ParseQuery(c.Request().URL.RawQuery) // URL.Query drops what it can't read
	q := &Query{list: listOf(c), values: values}
	if err != nil {
		q.Wrong("", "is not a query: escape every character that is not a letter, a digit or one of -._~")
	}
	return q
}

// Text is the value of a parameter, or empty if it is not there.
func (q *Query) Text(name string) string {
	q.known = append(q.known, name)
	values := q.values[name]
	switch {
	case len(values) == 0:
		return ""
	case len(values) > 1:
		q.Wrong(name, "must be there once")
	case values[0] == "":
		q.Wrong(name, "must not be empty; leave it out instead")
	case !utf8.ValidString(values[0]) || strings.Contains(values[0], "\x00"):
		q.Wrong(name, "must be text in UTF-8 without U+0000")
	default:
		return values[0]
	}
	return ""
}

// Page is the part of the list that limit and cursor ask for.
func (q *Query) Page() Page {
	page := Page{Limit: defaultLimit}
	if text := q.Text("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLimit {
			q.Wrong("limit", fmt.Sprintf("must be a whole number from 1 to %d", maxLimit))
		}
		page.Limit = n
	}
	if text := q.Text("cursor"); text != "" {
		id, ok := readCursor(q.list, text)
		if !ok {
			q.Wrong("cursor", "is not a cursor of this list: send the next_cursor of the page before, unchanged, to the same path")
		}
		page.Before = id
	}
	return page
}

// Wrong notes that a parameter is not what it must be.
func (q *Query) Wrong(name, detail string) {
	q.violations = append(q.violations, problem.Violation{Pointer: "?" + name, Detail: detail})
}

// Err is everything that is wrong with the query, parameters that nobody asked for included, or nil.
func (q *Query) Err() error {
	for name := range q.values {
		if !slices.Contains(q.known, name) {
			q.Wrong(strings.ToValidUTF8(name, "\ufffd"), "is not a parameter of this list")
		}
	}
	if len(q.violations) == 0 {
		return nil
	}
	slices.SortStableFunc(q.violations, func(a, b problem.Violation) int { return strings.Compare(a.Pointer, b.Pointer) }) // maps have no order
	return problem.Invalid(q.violations...)
}
