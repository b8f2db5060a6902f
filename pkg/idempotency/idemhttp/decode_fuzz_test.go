package idemhttp_test

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/einmal/einmal/pkg/idempotency"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

// Whatever is sent: it is refused as a problem, or it is a command that has one fingerprint in each of its spellings.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, thing, `{"name":"a"}{}`, `{"name":null}`, `{"name":"a","name":"b"}`, `[[[`, `{"name":"\ud83d\ude00 \u00e9","count":-0}`,
		`{"name":"a","count":9007199254740991,"small":-128,"urgent":true,"kind":"k","note":"","labels":{"~/":"","é":"\u0001"},"tags":["x",""],"owner":{"pager":1},"parts":[{},{"team":"t"}],"a/b~c":"s","do":"d"}`,
		`{"name":"a","x":1,"Count":1.0,"tags":[1,null,{"a":[{}]}],"labels":{"":0}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		command := newThing()
		if err := idemhttp.Decode(body, command); err != nil {
			var p *problem.Problem
			if !errors.As(err, &p) || p.Code != problem.MalformedBody && p.Code != problem.ValidationFailed {
				t.Fatalf("%q: %v", body, err)
			}
			if (p.Code == problem.ValidationFailed) != (len(p.Errors) > 0) {
				t.Fatalf("%q: %s with the errors %v", body, p.Code, p.Errors)
			}
			return
		}
		want := fingerprint(t, command)
		for name, spelling := range spellings(t, body, command) {
			again := newThing()
			if err := idemhttp.Decode(spelling, again); err != nil {
				t.Fatalf("%q was accepted, and %s of it, %q, is not: %v", body, name, spelling, err)
			}
			if got := fingerprint(t, again); got != want {
				t.Fatalf("%q has the fingerprint %s, and %s of it, %q, has %s", body, want, name, spelling, got)
			}
		}
	})
}

func fingerprint(t *testing.T, command *createThing) idempotency.Fingerprint {
	t.Helper()
	f, err := idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/things", Body: command}.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// spellings are other texts of the same command: members in another order, other white space, everything escaped that can be, and
// what the command itself is written as, defaults and all.
func spellings(t *testing.T, body []byte, command *createThing) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	sorted := jsontext.Value(body).Clone()
	must(t, sorted.Canonicalize())
	all["the canonical form"] = sorted
	spaced := jsontext.Value(body).Clone()
	must(t, spaced.Indent(jsontext.WithIndent("\t")))
	all["the indented form"] = spaced
	escaped, err := jsontext.AppendFormat(nil, body, jsontext.EscapeForHTML(true), jsontext.EscapeForJS(true))
	must(t, err)
	all["the escaped form"] = escaped

	written, err := json.Marshal(command)
	must(t, err)
	var members map[string]jsontext.Value
	must(t, json.Unmarshal(written, &members))
	for name, value := range members {
		if value.Kind() == 'n' { // that is what an absent one is in the command, and refused in a body
			delete(members, name)
		}
	}
	written, err = json.Marshal(members)
	must(t, err)
	all["the command"] = written
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
