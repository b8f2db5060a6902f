package simulator

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decode reads one JSON object into a struct. It accepts no member that the struct does not have, none twice, none that is
// null, and misses none of those required. The error is a sentence for whoever wrote the body.
func decode(body []byte, into any, required ...string) error {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return fmt.Errorf("the body is not one JSON object: %s", syntax(err))
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if members[name].Kind() == 'n' {
			return fmt.Errorf("%s must not be null; leave it out instead", name)
		}
	}
	var wrong *json.SemanticError
	err := json.Unmarshal(body, into, json.RejectUnknownMembers(true))
	switch {
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &wrong):
		return fmt.Errorf("%s is not a member of this request", wrong.JSONPointer.LastToken())
	case errors.As(err, &wrong):
		return fmt.Errorf("%s cannot have this value: it has another type, or is out of range", wrong.JSONPointer.LastToken())
	case err != nil:
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(required), func(name string) bool {
		_, sent := members[name]
		return sent
	})
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s is missing", missing[0])
	}
	return fmt.Errorf("%s are missing", strings.Join(missing, ", "))
}

func syntax(err error) string {
	var s *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "a member stands twice"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "it ends too early"
	case errors.As(err, &s):
		return fmt.Sprintf("there is a syntax error at byte %d", s.ByteOffset)
	}
	return "it begins with something else than {"
}
