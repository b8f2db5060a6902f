package idemhttp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/problem"
	"github.com/einmal/einmal/pkg/server/servertest"
)

func TestFingerprints(t *testing.T) {
	s := start(t, database.SQLite)
	ask := func(t *testing.T, body string) servertest.Answer {
		t.Helper()
		return s.As("demo-approver").Send(t, "POST", "/v1/fingerprints", body) // who approves wants to compare
	}
	type answer struct{ Fingerprint, Version, Canonical string }

	t.Run("are those that a write then has", func(t *testing.T) {
		for method, paths := range map[string][]string{"POST": {"/v1/things"}, "PUT": {"/v1/things/thg_1/part", "/v1/things/thg%2D1/part", "/v1/things/a%20b%2Fc/part"}} {
			for _, path := range paths {
				for i, body := range []string{thing, `{"name":"a","count":7,"labels":{"b":"\u00e9","a":""},"owner":{"team":"nobody"}}`} {
					var got answer
					ask(t, `{"body":`+body+`,"path":"`+path+`","method":"`+method+`"}`).Decode(t, &got)
					write := s.As("demo-agent").Send(t, method, path, body, key(fmt.Sprintf("%s%s%d", method, path, i)))
					op, err := s.exec.ByID(t.Context(), "acme", write.Header.Get("Operation-Id"))
					if err != nil {
						t.Fatal(err)
					}
					if got.Fingerprint != string(op.Fingerprint) || got.Version != "v1" {
						t.Errorf("%s %s %s: asked %+v, stored %s", method, path, body, got, op.Fingerprint)
					}
					sum := sha256.Sum256([]byte(got.Canonical))
					if got.Fingerprint != "v1:"+hex.EncodeToString(sum[:]) {
						t.Errorf("%s is not the hash of %s", got.Fingerprint, got.Canonical)
					}
				}
			}
		}
	})

	t.Run("claim nothing and take no key", func(t *testing.T) {
		stored := s.count(t, "operations")
		a := s.As("demo-agent").Send(t, "POST", "/v1/fingerprints", `{"method":"POST","path":"/v1/things","body":{"name":"unsent"}}`, key("k"))
		if a.Status != 200 || s.count(t, "operations") != stored {
			t.Errorf("%s, %d operations more", a, s.count(t, "operations")-stored)
		}
	})

	t.Run("show the defaults", func(t *testing.T) {
		var got answer
		ask(t, `{"method":"POST","path":"/v1/things","body":{"name":"a"}}`).Decode(t, &got)
		want := `{"account":"acme","command":{"a/b~c":"","count":0,"do":"","kind":"plain","labels":{},"name":"a","note":null,"owner":{"pager":0,"team":"nobody"},` +
			`"parts":[],"small":0,"tags":["default"],"urgent":false},"method":"POST","path":"/v1/things","v":"v1"}`
		if diff := cmp.Diff(want, got.Canonical); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("of what would be refused are refused, with places below /body", func(t *testing.T) {
		for body, want := range map[string][]string{
			`{"method":"POST","path":"/v1/things","body":{"name":"","count":1.5,"Note":"x","owner":{"a/b":1},"tags":["x",null]}}`: {
				"/body/count", "/body/tags/1", "/body/Note", "/body/owner/a~1b", "/body/name",
			},
			`{"method":"POST","path":"/v1/things","body":{}}`:                    {"/body/name"},
			`{"method":"POST","path":"/v1/things"}`:                              {"/body"},
			`{"method":"POST","path":"/v1/things","body":null}`:                  {"/body"},
			`{"method":"POST","path":"/v1/things","body":[]}`:                    {"/body"},
			`{"method":"POST","path":"/v1/things","body":"{}"}`:                  {"/body"},
			`{"method":"POST","path":"/v1/things","body":{"name":"a"},"x":1}`:    {"/x"},
			`{"method":"POST","path":"/v1/things","Body":{"name":"a"}}`:          {"/Body"},
			`{"method":"DELETE","path":"/v1/things","body":{"name":"a"}}`:        {"/path"},
			`{"method":"post","path":"/v1/things","body":{"name":"a"}}`:          {"/path"},
			`{"method":"GET","path":"/v1/operations","body":{}}`:                 {"/path"},
			`{"method":"POST","path":"/v1/things/","body":{"name":"a"}}`:         {"/path"},
			`{"method":"POST","path":"/v1/things?a=b","body":{"name":"a"}}`:      {"/path"},
			`{"method":"POST","path":"v1/things","body":{"name":"a"}}`:           {"/path"},
			`{"method":"PUT","path":"/v1/things/:id/parts","body":{"name":"a"}}`: {"/path"},
			`{"method":"PUT","path":"/v1/things//part","body":{"name":"a"}}`:     {"/path"},
			`{"method":"PUT","path":"/v1/things/1?x/part","body":{"name":"a"}}`:  {"/path"},
			`{"method":"PUT","path":"/v1/things/%zz/part","body":{"name":"a"}}`:  {"/path"},
			`{"method":"PUT","path":"/v1/things/%FF/part","body":{"name":"a"}}`:  {"/path"},
			`{"method":1,"path":2,"body":{"name":"a"}}`:                          {"/method", "/path"},
			`{"path":"/v1/things","body":{"name":"a"}}`:                          {"/path"},
			`{}`: {"/body", "/path"},
		} {
			p := expect(t, body, ask(t, body), 422, problem.ValidationFailed)
			var got []string
			for _, v := range p.Errors {
				got = append(got, v.Pointer)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", body, diff)
			}
		}
	})

	t.Run("are asked for in JSON of the same kind", func(t *testing.T) {
		expect(t, "twice", ask(t, `{"method":"POST","path":"/v1/things","body":{"name":"a","name":"a"}}`), 400, problem.MalformedBody)
		expect(t, "nothing", s.As("demo-agent").Send(t, "POST", "/v1/fingerprints", " "), 400, problem.MalformedBody)
		expect(t, "media", s.As("demo-agent").Send(t, "POST", "/v1/fingerprints", thing, "Content-Type: text/json"), 415, problem.UnsupportedMediaType)
		expect(t, "size", ask(t, `{"x":"`+strings.Repeat("a", 1<<20)+`"}`), 413, problem.BodyTooLarge)
	})
}
