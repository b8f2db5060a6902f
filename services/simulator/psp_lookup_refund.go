package simulator

import (
	"net/http"

	"github.com/einmal/einmal/pkg/database"
)

// retrieveRefund answers GET /refunds/{id}.
func (p pspAPI) retrieveRefund(tx database.Tx, in request, f *form) (Answer, error) {
	if wrong := f.wrong(); wrong != nil {
		return wrong.answer(http.StatusBadRequest), nil
	}
	id := in.http.PathValue("id")
	var found []refund
	if err := tx.Where("id = ?", id).Find(&found).Error; err != nil {
		return Answer{}, err
	}
	if len(found) == 0 {
		return pspNotFound("refund", id, "refund"), nil
	}
	r := &found[0]
	var err error
	r.metadata, err = metadataOf(tx, id)
	return decided(http.StatusOK, r.object()), err
}

// listRefunds answers GET /refunds.
func (p pspAPI) listRefunds(tx database.Tx, _ request, f *form) (Answer, error) {
	query, limit := f.page(f.created(tx.DB), "starting_after")
	if id := f.text("payment_intent"); id != "" {
		query = query.Where("intent = ?", id)
	}
	if id := f.text("charge"); id != "" {
		query = query.Where("charge = ?", id)
	}
	if wrong := f.wrong(); wrong != nil {
		return wrong.answer(http.StatusBadRequest), nil
	}
	var found []refund
	if err := query.Find(&found).Error; err != nil {
		return Answer{}, err
	}
	more := len(found) > limit
	if more {
		found = found[:limit]
	}
	ids := make([]string, len(found))
	for n, r := range found {
		ids[n] = r.ID
	}
	metadata, err := metadataOfAll(tx, ids)
	objects := []*refundObject{}
	for _, r := range found {
		r.metadata = metadata[r.ID]
		objects = append(objects, r.object())
	}
	return decided(http.StatusOK, pspPage{Object: "list", URL: "/v1/refunds", HasMore: more, Data: objects}), err
}
