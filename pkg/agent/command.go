package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Command is what is asked of a target, in the one form in which commands are compared and sent: the same bytes in every attempt.
type Command struct {
	Target string         `json:"target"` // its name; where it is stands in the intention
	Method string         `json:"method"`
	Path   string         `json:"path"` // concrete: what a step means must not depend on what is filled in later
	Body   jsontext.Value `json:"body"` // RFC 8785
}

// methods are those that change something.
var methods = []string{"POST", "PUT", "PATCH", "DELETE"}

// newCommand puts a command into its form, and says everything that is wrong with it.
func newCommand(target, method, path string, body jsontext.Value) (c Command, wrong []string) {
	if !slices.Contains(methods, method) {
		wrong = append(wrong, fmt.Sprintf("/method: %q is none of %s", method, strings.Join(methods, ", ")))
	}
	if why := badPath(path); why != "" {
		wrong = append(wrong, "/path: "+why)
	}
	if len(body) == 0 {
		body = jsontext.Value("{}")
	}
	canonical, bad := canonicalise(body)
	for _, why := range bad {
		wrong = append(wrong, "/body"+why)
	}
	return Command{target, method, path, canonical}, wrong
}

// Name is the step of a command that no step names: what is asked for, and nothing else.
func (c Command) Name() string {
	text, err := json.Marshal(c, json.Deterministic(true))
	if err != nil {
		panic(err) // texts, and a body that was parsed
	}
	sum := sha256.Sum256(text)
	return commandPrefix + hex.EncodeToString(sum[:])
}

// commandPrefix begins the names of steps that nobody has named.
const commandPrefix = "command:"

// Equal tells whether two commands ask for the same.
func (c Command) Equal(other Command) bool {
	return c.Target == other.Target && c.Method == other.Method && c.Path == other.Path && bytes.Equal(c.Body, other.Body)
}

// badPath says what is wrong with a path. It names one place at the target and nothing else: no other host, no query, nothing that somebody on the way
// would resolve.
func badPath(path string) string {
	switch {
	case path == "":
		return "it is missing, or empty; it must begin with /, such as /v1/tickets"
	case !strings.HasPrefix(path, "/"):
		return "it must begin with /; the host is its target's"
	case strings.HasPrefix(path, "//"), strings.Contains(path, "\\"):
		return "it names no other host"
	case strings.ContainsAny(path, "?#"):
		return "it has no query and no fragment: what a command means is in its body"
	case strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "it has no spaces, control or other characters than ASCII; escape them"
	case slices.ContainsFunc(strings.Split(path, "/"), isDots):
		return "no part of it is . or .., escaped or not"
	}
	return ""
}

func isDots(part string) bool {
	part = strings.ReplaceAll(strings.ToLower(part), "%2e", ".")
	return part == "." || part == ".."
}

// canonicalise is RFC 8785 for what that form keeps as it is. A number that would be printed otherwise is refused, since two commands that
// differ only there would be taken for one, or sent as another.
func canonicalise(body jsontext.Value) (canonical jsontext.Value, wrong []string) {
	tokens := jsontext.NewDecoder(bytes.NewReader(body))
	if tokens.PeekKind() != '{' {
		return nil, []string{": it is one JSON object, {} where there is nothing to say"}
	}
	for {
		token, err := tokens.ReadToken()
		if err != nil {
			return nil, append(wrong, ": "+err.Error())
		}
		if token.Kind() == '0' && !exact(token.String()) {
			wrong = append(wrong, fmt.Sprintf("%s: the number %s has no exact plain spelling; write it shorter, or as text", tokens.StackPointer(), token))
		}
		if tokens.StackDepth() == 0 {
			break
		}
	}
	canonical = slices.Clone(body)
	if err := canonical.Canonicalize(); err != nil {
		wrong = append(wrong, ": "+err.Error())
	}
	return canonical, wrong
}

// exact tells whether a number is spelled as the shortest decimal that means it.
func exact(number string) bool {
	f, err := strconv.ParseFloat(number, 64)
	return err == nil && strconv.FormatFloat(f, 'f', -1, 64) == number && number != "-0"
}
