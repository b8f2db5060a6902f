package payments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
	"github.com/stripe/stripe-go/v82/webhook"

	"github.com/einmal/einmal/pkg/catalogue"
	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/outbox"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/review"
	"github.com/einmal/einmal/pkg/server"
)

// hookPath is where the provider tells what has happened.
const hookPath = "/v1/hooks/psp"

// hook takes the provider's webhooks. None of them settles anything, neither one that says yes nor one that says no: each makes the
// provider be asked now about what it tells of. What is asked for is true when it is answered, whatever order webhooks come in and
// however late; and who has stolen the secret can make us ask, not believe. Only what speaks against a final state, about which
// nothing is asked any more, goes to a person.
type hook struct {
	exec    *idempotency.Executor
	store   store
	outbox  *outbox.Outbox
	secret  string
	account string // whose operators are asked about what is not ours
}

// told is what a webhook says, as far as it is looked at.
type told struct {
	EventID string `json:"event_id"`
	Type    string `json:"type"`
	Object  string `json:"object"`    // payment_intent, refund, charge
	ID      string `json:"reference"` // of the object
	Status  string `json:"status"`
	Minor   int64  `json:"minor"` // of a payment: captured; of a charge: refunded
	claims
}

// claims is what an object says of itself by its metadata: that it is ours, and which.
type claims struct {
	Account   string `json:"account"`
	PaymentID string `json:"payment_id"`
	RefundID  string `json:"refund_id"`
}

// receive answers POST /v1/hooks/psp. Whatever can never be of use is answered 200 as well: it would be sent again for days.
func (h hook) receive(c echo.Context) error {
	body, err := io.ReadAll(io.LimitReader(c.Request().Body, idemhttp.MaxBody+1))
	switch {
	case err != nil:
		return problem.New(problem.MalformedBody, "The body ended before it was complete.")
	case len(body) > idemhttp.MaxBody:
		return problem.New(problem.BodyTooLarge, fmt.Sprintf("The body has more than %d bytes.", idemhttp.MaxBody))
	}
	if err := h.verify(c.Request().Header, body); err != nil {
		return err
	}
	event, err := readEvent(body)
	if err != nil {
		return err
	}
	account, err := h.whose(c.Request().Context(), event.claims)
	if err != nil {
		return err
	}
	result, err := h.exec.Do(c.Request().Context(), idempotency.Request{
		Key: idempotency.Key("psp:" + event.EventID), Type: catalogue.OperationReconcile, Principal: "psp", RequestID: server.RequestID(c),
		Command: idempotency.Command{Account: account, Method: http.MethodPost, Path: hookPath, Body: event},
	}, func(tx database.Tx, op idempotency.Operation) (idempotency.Answer, error) {
		done, about, err := h.consider(tx, account, event)
		if err != nil {
			return idempotency.Answer{}, err
		}
		answer, err := idemhttp.Success(http.StatusOK, struct {
			EventID     string      `json:"event_id"`
			Disposition disposition `json:"disposition"`
		}{event.EventID, done})
		answer.Resource = about
		return answer, err
	})
	if err != nil {
		return err
	}
	h.outbox.Nudge()
	return idemhttp.Write(c, result)
}

// verify holds a webhook to the provider's signature, which must not be older than five minutes. Without a secret of ours nothing
// is signed right.
func (h hook) verify(header http.Header, body []byte) error {
	lines := header.Values("Stripe-Signature")
	switch {
	case h.secret == "":
		return problem.New(problem.Unauthenticated, "This service has no secret to check signatures with, so it accepts none: set EINMAL_PSP_WEBHOOK_SECRET.")
	case len(lines) != 1:
		return problem.New(problem.Unauthenticated, "Send one header Stripe-Signature.")
	}
	switch err := webhook.ValidatePayload(body, lines[0], h.secret); {
	case errors.Is(err, webhook.ErrTooOld):
		return problem.New(problem.Unauthenticated, "The signature is too old; sign the webhook again when it is sent again.")
	case err != nil:
		return problem.New(problem.Unauthenticated, "The signature is not one of this body by the secret that both of us know.")
	}
	return nil
}

// maxEventID leaves room in a key for its beginning.
const maxEventID = idempotency.MaxKeyLength - len("psp:")

// readEvent reads a webhook, of which much is not looked at.
func readEvent(body []byte) (told, error) {
	var event struct {
		ID   string `json:"id"`
		Type string `json:"type"`
		Data struct {
			Object jsontext.Value `json:"object"`
		} `json:"data"`
	}
	var kind struct {
		ID     string `json:"id"`
		Object string `json:"object"`
	}
	err := json.Unmarshal(body, &event)
	if err == nil {
		err = json.Unmarshal(event.Data.Object, &kind)
	}
	if err != nil {
		return told{}, problem.New(problem.MalformedBody, "The body is not an event: it can't be read as the provider writes them.")
	}
	t := told{EventID: event.ID, Type: event.Type, Object: kind.Object, ID: kind.ID}
	if slices.Contains(considered, kind.Object) {
		if err := t.readObject(event.Data.Object); err != nil {
			return told{}, problem.New(problem.MalformedBody, "The body is not an event: its "+kind.Object+" can't be read as the provider writes them.")
		}
	}
	if event.ID == "" || len(event.ID) > maxEventID || !t.readable() {
		return told{}, problem.New(problem.MalformedBody, fmt.Sprintf("The body is not an event: its id is not 1 to %d characters, or something in it is not visible ASCII.", maxEventID))
	}
	return t, nil
}

// considered are the kinds of objects that we make, or that come with them.
var considered = []string{"payment_intent", "refund", "charge"}

// readObject reads one of those.
func (t *told) readObject(object jsontext.Value) error {
	var o struct {
		Status         string            `json:"status"`
		AmountReceived int64             `json:"amount_received"`
		AmountRefunded int64             `json:"amount_refunded"`
		Metadata       map[string]string `json:"metadata"`
	}
	if err := json.Unmarshal(object, &o); err != nil {
		return err
	}
	t.Status, t.Minor = o.Status, o.AmountRefunded
	if t.Object == "payment_intent" {
		t.Minor = o.AmountReceived
	}
	c := claims{Account: o.Metadata[metaAccount], PaymentID: o.Metadata[metaPayment], RefundID: o.Metadata[metaRefund]}
	if isName(c.Account + c.PaymentID + c.RefundID) {
		t.claims = c
	} // else it is somebody else's object, who writes there what he likes
	return nil
}

// readable reports whether all that the provider itself has named is so as it names things.
func (t told) readable() bool { return isName(t.EventID + t.Type + t.Object + t.ID + t.Status) }

// isName reports whether a text is of what the provider and we name things with: visible ASCII, which every database and log keeps.
func isName(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < '!' || r > '~' })
}

// whose is the account that an object belongs to: the one that it names, if that has what it names.
func (h hook) whose(ctx context.Context, c claims) (string, error) {
	_, err := h.store.payment(h.store.db.Read(ctx), c.Account, c.PaymentID)
	if errors.Is(err, errNotFound) {
		return h.account, nil
	}
	return c.Account, err
}

// disposition is what became of a webhook.
type disposition string

const (
	asksNow     disposition = "reconciling"  // the provider is asked about it now
	saysNothing disposition = "ignored"      // it tells what is known, or what nobody here wants to know
	contradicts disposition = "contradicted" // it speaks against what is final, or of what nobody has agreed to: a person is asked
	isUnmatched disposition = "unmatched"    // it is about nothing of ours: kept, and a person is asked later
)

// consider says what a webhook means now.
func (h hook) consider(tx database.Tx, account string, t told) (disposition, idempotency.Resource, error) {
	if !slices.Contains(considered, t.Object) {
		return saysNothing, idempotency.Resource{}, nil
	}
	payment, err := h.store.payment(tx.DB, account, t.PaymentID)
	switch {
	case errors.Is(err, errNotFound), err == nil && account != t.Account:
		return isUnmatched, idempotency.Resource{}, h.keep(tx, t)
	case err != nil:
		return "", idempotency.Resource{}, err
	}
	done, err := saysNothing, error(nil)
	switch t.Object {
	case "payment_intent":
		done, err = h.considerPayment(tx, payment, t)
	case "charge":
		if t.Minor > payment.ReservedMinor+payment.RefundedMinor {
			done, err = h.contradict(tx, account, catalogue.PaymentCreate, payment.OperationID, fmt.Sprintf("%s: %d are refunded there, of which we know %d", t.Type, t.Minor, payment.RefundedMinor))
		}
	case "refund":
		done, err = h.considerRefund(tx, payment, t)
	}
	return done, aboutPayment(payment.ID), err
}

// reconcile makes the provider be asked now about an operation, if it has not ended. Whoever is asked how it ends sees why. What nobody has
// agreed to yet was not sent: what is there of it all the same is for a person to know before they decide.
func (h hook) reconcile(tx database.Tx, account, operationID string, t told) (disposition, error) {
	e, err := h.outbox.Reconcile(tx, account, operationID)
	switch {
	case errors.Is(err, outbox.ErrNoEffect):
		return saysNothing, nil
	case err != nil:
		return "", err
	case e.State == idempotency.AwaitingApproval:
		return h.contradict(tx, account, e.Type, operationID, fmt.Sprintf("%s about %s, although nobody has agreed to it yet", t.Type, t.ID))
	}
	return asksNow, review.Add(tx, account, operationID, review.Evidence{Source: webhookSource, At: tx.Now, Says: fmt.Sprintf("%s about %s", t.Type, t.ID)})
}

// webhookSource is who has said what a webhook says, in a review.
const webhookSource = "psp webhook"

// contradict asks a person about what speaks against a final state. It changes nothing.
func (h hook) contradict(tx database.Tx, account, operation, operationID, says string) (disposition, error) {
	_, err := review.Open(tx, review.Question{
		AccountID: account, Kind: review.Contradiction, OperationID: operationID, Type: operation,
		Evidence: []review.Evidence{{Source: webhookSource, At: tx.Now, Says: says}},
	})
	return contradicts, err
}
