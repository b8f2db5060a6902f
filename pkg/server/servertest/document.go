package servertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// document is an OpenAPI document that exchanges are held to.
type document struct {
	routes routers.Router
	spec   *openapi3.T
}

// documents are those that were read before, by their text: a process tests one service, and starts it hundreds of times.
var documents sync.Map

// documentOf is readDocument, once for each text.
func documentOf(text []byte) (*document, error) {
	if d, read := documents.Load(string(text)); read {
		return d.(*document), nil
	}
	d, err := readDocument(text)
	if err == nil {
		documents.Store(string(text), d)
	}
	return d, err
}

func readDocument(text []byte) (*document, error) {
	spec, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	routes, err := legacy.NewRouter(spec) // validates, examples included
	if err != nil {
		return nil, err
	}
	return &document{routes, spec}, nil
}

// check returns what is wrong with an exchange; see Exchange.
func (d *document) check(request *http.Request, body []byte, answer Answer) error {
	sent := request.Clone(request.Context())
	sent.Body = io.NopCloser(bytes.NewReader(body))
	options := &openapi3filter.Options{
		IncludeResponseStatus: true,
		SkipSettingDefaults:   true,
		AuthenticationFunc:    hasToken,
	}
	if sent.Method == http.MethodHead { // GET without the body of the answer
		sent.Method, options.ExcludeResponseBody = http.MethodGet, true
	}
	route, parameters, err := d.routes.FindRoute(sent)
	if err != nil || strings.HasSuffix(sent.URL.Path, "/") { // the router overlooks a slash at the end, no service does
		return d.checkNoRoute(sent, answer)
	}
	input := &openapi3filter.RequestValidationInput{Request: sent, PathParams: parameters, Route: route, Options: options}
	requestError := openapi3filter.ValidateRequest(request.Context(), input)
	if requestError != nil && answer.Status < http.StatusBadRequest {
		return fmt.Errorf("a wrong request succeeded: %w", requestError)
	}
	output := &openapi3filter.ResponseValidationInput{RequestValidationInput: input, Status: answer.Status, Header: answer.Header, Options: options}
	if err := openapi3filter.ValidateResponse(request.Context(), output.SetBodyBytes(answer.Body)); err != nil {
		return err
	}
	return checkHeaders(route.Operation.Responses.Status(answer.Status).Value.Headers, answer.Header)
}

// checkHeaders finds headers that the document does not know of. Those of HTTP itself it need not tell.
func checkHeaders(known openapi3.Headers, got http.Header) error {
	ofHTTP := []string{"Content-Type", "Content-Length", "Transfer-Encoding", "Date", "Connection"}
	for name := range got {
		documented := slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(k string) bool { return strings.EqualFold(k, name) })
		if !documented && !slices.Contains(ofHTTP, name) {
			return fmt.Errorf("the header %s is undocumented", name)
		}
	}
	return nil
}

// checkNoRoute holds the answer to a path or method that is not in the document: a problem, or the methods that there are.
func (d *document) checkNoRoute(request *http.Request, answer Answer) error {
	switch answer.Status {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed:
	case http.StatusNoContent:
		if request.Method == http.MethodOptions {
			return nil
		}
		fallthrough
	default:
		return errors.New("the route is undocumented")
	}
	if request.Method == http.MethodGet && len(answer.Body) == 0 { // HEAD
		return nil
	}
	media := openapi3.NewContentWithSchemaRef(d.spec.Components.Schemas["Problem"], []string{"application/problem+json"})
	description := "no route"
	route := &routers.Route{Spec: d.spec, Operation: &openapi3.Operation{
		Responses: openapi3.NewResponses(openapi3.WithStatus(answer.Status, &openapi3.ResponseRef{
			Value: &openapi3.Response{Description: &description, Content: media},
		})),
	}}
	output := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request, Route: route},
		Status:                 answer.Status, Header: answer.Header,
	}
	return openapi3filter.ValidateResponse(request.Context(), output.SetBodyBytes(answer.Body))
}

func hasToken(_ context.Context, input *openapi3filter.AuthenticationInput) error {
	if input.RequestValidationInput.Request.Header.Get("Authorization") == "" {
		return input.NewError(errors.New("no Authorization"))
	}
	return nil
}
