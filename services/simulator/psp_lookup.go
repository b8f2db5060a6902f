package simulator

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/einmal/einmal/pkg/database"
)

// list is a page of objects as Stripe shows it.
type pspPage struct {
	Object  string `json:"object"`
	URL     string `json:"url"`
	HasMore bool   `json:"has_more"`
	Data    any    `json:"data"`

	NextPage *string `json:"next_page,omitzero"` // of a search
}

// Stripe's: https://docs.stripe.com/api/pagination.
const (
	pageLimit    = 10
	maxPageLimit = 100
)

// page narrows a query to what limit and the cursor ask for, the newest first, and one more to know whether there are more.
func (f *form) page(query *gorm.DB, cursor string) (paged *gorm.DB, limit int) {
	n := f.whole("limit", pageLimit)
	if n < 1 || n > maxPageLimit {
		f.violate("parameter_invalid_integer", "limit", "This value must be between 1 and 100.")
	}
	if after := f.text(cursor); after != "" {
		query = query.Where("id < ?", after)
	}
	return query.Order("id DESC").Limit(int(n) + 1), int(n)
}

// created narrows a query to when objects were created, in whole seconds as they show it.
func (f *form) created(query *gorm.DB) *gorm.DB {
	for bound, condition := range map[string]struct {
		sql  string
		more int64
	}{"gte": {"created_at >= ?", 0}, "gt": {"created_at >= ?", 1}, "lte": {"created_at < ?", 1}, "lt": {"created_at < ?", 0}} {
		if at := f.whole("created["+bound+"]", -1); at >= 0 {
			query = query.Where(condition.sql, time.Unix(at+condition.more, 0).UTC())
		}
	}
	return query
}

// retrieveIntent answers GET /payment_intents/{id}.
func (p pspAPI) retrieveIntent(tx database.Tx, in request, f *form) (Answer, error) {
	f.text("client_secret")
	if wrong := f.wrong(); wrong != nil {
		return wrong.answer(http.StatusBadRequest), nil
	}
	i, no, err := addressed(tx, in)
	if i == nil {
		return no, err
	}
	return decided(http.StatusOK, i.object()), nil
}

// listIntents answers GET /payment_intents. It shows what exists, without a lag.
func (p pspAPI) listIntents(tx database.Tx, _ request, f *form) (Answer, error) {
	query, limit := f.page(f.created(tx.DB), "starting_after")
	if wrong := f.wrong(); wrong != nil {
		return wrong.answer(http.StatusBadRequest), nil
	}
	objects, more, err := findIntents(tx, query, limit)
	return decided(http.StatusOK, pspPage{Object: "list", URL: "/v1/payment_intents", HasMore: more, Data: objects}), err
}

// clause is one condition of a search: metadata['name']:'value'. Others of Stripe's are not known here.
var searchClause = regexp.MustCompile(`^metadata\[["']([^"']+)["']\]:["']([^"']*)["']$`)

// searchIntents answers GET /payment_intents/search. The index lags: it shows intents from lag_ms after their creation.
func (p pspAPI) searchIntents(tx database.Tx, in request, f *form) (Answer, error) {
	query, limit := f.page(tx.Where("created_at <= ?", tx.Now.Add(-in.abilities.lag())), "page")
	for _, text := range strings.Split(f.required("query"), " AND ") {
		condition := searchClause.FindStringSubmatch(strings.TrimSpace(text))
		if condition == nil {
			f.violate("", "query", "We were unable to parse your search query. The simulator knows metadata['name']:'value' and AND.")
			break
		}
		query = query.Where("id IN (SELECT object FROM psp_metadata WHERE name = ? AND value = ?)", condition[1], condition[2])
	}
	if wrong := f.wrong(); wrong != nil {
		return wrong.answer(http.StatusBadRequest), nil
	}
	objects, more, err := findIntents(tx, query, limit)
	page := pspPage{Object: "search_result", URL: "/v1/payment_intents/search", HasMore: more, Data: objects}
	if more {
		page.NextPage = &objects[len(objects)-1].ID
	}
	return decided(http.StatusOK, page), err
}

func findIntents(tx database.Tx, query *gorm.DB, limit int) (objects []*intentObject, more bool, err error) {
	var found []intent
	if err := query.Find(&found).Error; err != nil {
		return nil, false, err
	}
	if more = len(found) > limit; more {
		found = found[:limit]
	}
	ids := make([]string, len(found))
	for n, i := range found {
		ids[n] = i.ID
	}
	metadata, err := metadataOfAll(tx, ids)
	objects = []*intentObject{}
	for _, i := range found {
		i.metadata = metadata[i.ID]
		objects = append(objects, i.object())
	}
	return objects, more, err
}
