package idemhttp

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/problem"
)

const (
	// HeaderKey is the request header of draft-ietf-httpapi-idempotency-key-header-07.
	HeaderKey = "Idempotency-Key"

	// HeaderAgentRun names the run of an agent that an attempt belongs to. It is recorded, never part of the fingerprint.
	HeaderAgentRun = "Agent-Run-Id"
)

// MaxBody is the largest body that is read, in bytes. The largest valid command is a ticket with a description of 500 000
// bytes; 1 MiB holds it as it is, and with the escapes that JSON asks for (\n, \"). It does not hold it with every letter of
// another script written as \uXXXX, as some libraries do unless told otherwise.
const MaxBody = 1 << 20

// maxAgentRun bounds Agent-Run-Id, in characters.
const maxAgentRun = 128

// Caller is who makes an attempt, as authentication found out.
type Caller struct {
	Account   string // whose keys, operations and resources these are
	Principal string // who of that account
}

// Call is a write request that has a key and a body. Nothing has been stored for it.
type Call struct {
	caller   Caller
	key      idempotency.Key
	agentRun string
	request  *http.Request
	id       string
	body     []byte
	wrong    []problem.Violation // what Decode has to tell beside the body's own
}

// Begin reads a write request in the contract's order: the key (400), the media type (415), the size (413). Its errors are
// *problem.Problem.
func Begin(c echo.Context, caller Caller) (*Call, error) {
	r := c.Request()
	call := &Call{caller: caller, request: r, id: c.Response().Header().Get(echo.HeaderXRequestID)}
	var err error
	if call.key, err = key(r); err != nil {
		return nil, err
	}
	if call.body, err = readBody(r); err != nil {
		return nil, err
	}
	call.agentRun, call.wrong = AgentRun(r)
	call.wrong = append(call.wrong, noQuery(r)...)
	return call, nil
}

// Request is the attempt at an operation of the given type that this call makes. The command's path is the concrete one, and
// no header but the key has a part in it.
func (c *Call) Request(operationType string, command any) idempotency.Request {
	return idempotency.Request{
		Key:       c.key,
		Type:      operationType,
		Command:   idempotency.Command{Account: c.caller.Account, Method: c.request.Method, Path: c.request.URL.Path, Body: command},
		Principal: c.caller.Principal,
		AgentRun:  c.agentRun,
		RequestID: c.id,
	}
}

// Decode reads the body into a command, strictly, and validates it. Its errors are *problem.Problem: 400 malformed-body, or 422
// validation-failed with everything that is wrong, Agent-Run-Id and query parameters (there are none on a write) included.
func (c *Call) Decode(command Command) error { return decode(c.body, command, c.wrong...) }

func key(r *http.Request) (idempotency.Key, error) {
	key, err := idempotency.ParseKey(r.Header.Values(HeaderKey))
	switch {
	case errors.Is(err, idempotency.ErrKeyMissing):
		return "", problem.New(problem.IdempotencyKeyMissing,
			"This request changes something: send an Idempotency-Key header with a value that is new for each intended action and the same for each retry of it. A UUIDv7 serves well.")
	case err != nil:
		return "", problem.New(problem.IdempotencyKeyInvalid, "The Idempotency-Key header does not hold a key: "+reason(err, idempotency.ErrKeyInvalid)+".")
	}
	return key, nil
}

// reason is what err says beyond the sentinel it wraps.
func reason(err, sentinel error) string {
	return strings.TrimPrefix(err.Error(), sentinel.Error()+": ")
}

// AgentRun reads Agent-Run-Id. What is wrong with it is told with the violations of the body.
func AgentRun(r *http.Request) (string, []problem.Violation) {
	lines := r.Header.Values(HeaderAgentRun)
	if len(lines) == 0 {
		return "", nil
	}
	visible := func(s string) bool {
		return strings.IndexFunc(s, func(c rune) bool { return c < '!' || c > '~' }) < 0
	}
	if len(lines) > 1 || lines[0] == "" || len(lines[0]) > maxAgentRun || !visible(lines[0]) {
		return "", []problem.Violation{{Detail: fmt.Sprintf(
			"the header %s is one value of 1 to %d visible ASCII characters without spaces, or absent", HeaderAgentRun, maxAgentRun)}}
	}
	return lines[0], nil
}

// noQuery refuses query parameters: a write says all it means in its path and body, and what is not fingerprinted must not look as
// if it counted.
func noQuery(r *http.Request) []problem.Violation {
	if r.URL.RawQuery == "" && !r.URL.ForceQuery {
		return nil
	}
	return []problem.Violation{{Pointer: "?", Detail: "a write has no query parameters; what it means stands in its path and body"}}
}

func readBody(r *http.Request) ([]byte, error) {
	if len(r.Header.Values(echo.HeaderContentEncoding)) > 0 {
		return nil, problem.New(problem.UnsupportedMediaType, "Send the body as it is: Content-Encoding is not supported, whichever.")
	}
	if !isJSON(r.Header.Values(echo.HeaderContentType)) {
		return nil, problem.New(problem.UnsupportedMediaType, "Send the body as JSON in UTF-8, with one header Content-Type: application/json.")
	}
	tooLarge := problem.New(problem.BodyTooLarge, fmt.Sprintf("The body has more than %d bytes.", MaxBody))
	if r.ContentLength > MaxBody {
		if r.Header.Get("Expect") == "" { // who waits for 100 Continue has not begun, and reading would ask for it
			drain(r.Body)
		}
		return nil, tooLarge
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	switch {
	case err != nil: // the caller broke off; the answer is for whoever may still listen
		return nil, problem.New(problem.MalformedBody, "The body ended before it was complete.")
	case len(body) > MaxBody:
		drain(r.Body)
		return nil, tooLarge
	}
	return body, nil
}

// maxDrain is how much of a body that is too large is read and thrown away. A caller that is still sending when the connection
// closes loses the answer with it, and would not learn why; one that sends more than this is not listening.
const maxDrain = 16 * MaxBody

func drain(body io.Reader) { _, _ = io.CopyN(io.Discard, body, maxDrain) }

// isJSON reports whether Content-Type says JSON. RFC 8259 gives it no charset; who names one means it, and bytes of another read
// as UTF-8 would be another text.
func isJSON(lines []string) bool {
	if len(lines) != 1 {
		return false
	}
	media, parameters, err := mime.ParseMediaType(lines[0])
	charset, said := parameters["charset"]
	return err == nil && media == echo.MIMEApplicationJSON && (!said || strings.EqualFold(charset, "utf-8"))
}
