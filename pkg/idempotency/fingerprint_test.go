package idempotency_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/idempotency"
)

var update = flag.Bool("update", false, "write the golden files anew; a fingerprint that changes needs a new version")

const golden = "testdata/fingerprints.json"

// fingerprinted is what the golden file keeps of a command.
type fingerprinted struct {
	Name        string `json:"name"`
	Canonical   string `json:"canonical"`
	Fingerprint string `json:"fingerprint"`
}

// commands are those of the golden file. A stored fingerprint lives for more than a year: what is here never changes, and new
// ones are added at the end.
var commands = []struct {
	name    string
	command idempotency.Command
}{
	{"an empty body", idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/tickets/tkt_1/comments", Body: map[string]any{}}},
	{"members in no order", idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/tickets", Body: map[string]any{"title": "t", "project": "p", "Z": 1, "a": 2, "aa": 3, "_": 4}}},
	{"a struct", idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/tickets", Body: ticket{Title: "Disk full", Project: "ops", Priority: "normal", Labels: map[string]string{"b": "2", "a": "1"}}}},
	{"a struct with nothing in it", idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/tickets", Body: ticket{}}},
	{"an empty map, list and text", idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/x", Body: map[string]any{"map": map[string]any{}, "list": []any{}, "text": ""}}},
	{"truth and nothing", idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/x", Body: map[string]any{"yes": true, "no": false, "null": nil}}},
	{"numbers at the ends", idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/x", Body: []int64{0, 1, -1, 9007199254740991, -9007199254740991, 9007199254740990}}},
	{"escapes", idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/x", Body: map[string]any{"t": "\"\\/\b\f\n\r\t\u0000\u0001\u001f\u007f<>&'"}}},
	{"text beyond ASCII", idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/x", Body: map[string]any{"t": "naïve 日本 \u0080\u00a0\u2028\u2029\ufeff\ufffd\uffff"}}},
	{"text beyond the basic plane", idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/x", Body: map[string]any{"t": "🔑𝄞\U0010ffff"}}},
	// U+1F511 is less than U+FB33 in UTF-16, by which RFC 8785 sorts, and greater as a code point and in UTF-8.
	{"names in the order of UTF-16", idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/x", Body: map[string]any{"\U0001f511": 1, "\ufb33": 2, "\u20ac": 3, "\r": 4, "1": 5}}},
	{"composed and decomposed are two texts", idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/x", Body: []string{"\u00e9", "e\u0301"}}},
	{"deep", idempotency.Command{Account: "acme", Method: "PUT", Path: "/v1/x", Body: map[string]any{"a": []any{map[string]any{"b": []any{[]any{}, []any{1}}}}}}},
	{"another account", idempotency.Command{Account: "globex", Method: "POST", Path: "/v1/tickets/tkt_1/comments", Body: map[string]any{}}},
	{"another method", idempotency.Command{Account: "acme", Method: "PUT", Path: "/v1/tickets/tkt_1/comments", Body: map[string]any{}}},
	{"another path", idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/tickets/tkt_2/comments", Body: map[string]any{}}},
}

type ticket struct {
	Title    string            `json:"title"`
	Project  string            `json:"project"`
	Priority string            `json:"priority"`
	Labels   map[string]string `json:"labels"`
	Source   string            `json:"source_event_id,omitzero"`
}

func TestFingerprints(t *testing.T) {
	var got []fingerprinted
	for _, c := range commands {
		canonical, err := c.command.Canonical()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		fingerprint, err := c.command.Fingerprint()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got = append(got, fingerprinted{c.name, string(canonical), string(fingerprint)})
	}
	if *update {
		write(t, got)
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var want []fingerprinted
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fingerprints changed (-golden +now); stored ones would no longer match:\n%s", diff)
	}

	t.Run("no two commands have one", func(t *testing.T) {
		seen := map[string]string{}
		for _, g := range got {
			if other, taken := seen[g.Fingerprint]; taken {
				t.Errorf("%q and %q", g.Name, other)
			}
			seen[g.Fingerprint] = g.Name
		}
	})
	t.Run("have a version and 64 hexadecimal digits", func(t *testing.T) {
		form := regexp.MustCompile(`^v1:[0-9a-f]{64}$`)
		for _, g := range got {
			if !form.MatchString(g.Fingerprint) || idempotency.Fingerprint(g.Fingerprint).Version() != idempotency.FingerprintVersion {
				t.Error(g.Fingerprint)
			}
		}
	})
	t.Run("are of RFC 8785's own example, as it is printed there", func(t *testing.T) {
		var body any
		if err := jsonv2.Unmarshal([]byte(`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
			"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`), &body); err != nil {
			t.Fatal(err)
		}
		canonical, err := idempotency.Command{Body: body}.Canonical()
		const want = `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`
		if err != nil || !strings.Contains(string(canonical), want) {
			t.Errorf("got %s, %v", canonical, err)
		}
	})
	t.Run("are refused for text that is not UTF-8", func(t *testing.T) {
		for _, c := range []idempotency.Command{{Body: "\xff"}, {Account: "\xff"}, {Path: "/\xff"}, {Body: map[string]int{"\xff": 1}}} {
			if f, err := c.Fingerprint(); err == nil {
				t.Errorf("%v has %s", c, f)
			}
		}
	})
	t.Run("are refused for what JSON can't say", func(t *testing.T) {
		if f, err := (idempotency.Command{Body: func() {}}).Fingerprint(); err == nil {
			t.Errorf("got %s", f)
		}
	})
}

func write(t *testing.T, all []fingerprinted) {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(all); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(golden, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

var tricky = []string{
	`{}`, `{"a":1,"b":[true,null,{"c":"d"}]}`, `{"b":1,"a":2}`, `{"t":"\u0041\n\u2028"}`, `{"t":"🔑"}`, `{"🔑":1,"\ufb33":2}`, `{"n":9007199254740991}`,
	`{"n":-9007199254740991}`, `{"n":1}`, `{"n":1.0}`, `{"n":10e-1}`, `{"n":-0}`, `{"t":""}`, `{"t":" "}`, `{"":0}`, `[]`, `""`, `{"a":{"b":{"c":[]}}}`,
	`{"t":"\ufffd"}`, `{"t":"\"\\"}`, `{"t":"\u0000"}`, `{"t":"\u007f"}`, `{"t":"é"}`, `{"t":"é"}`,
}

// Two spellings of one command agree: order of members, white space and escapes say nothing.
func FuzzTwoSpellingsOfOneCommandAgree(f *testing.F) {
	for i, text := range tricky {
		f.Add([]byte(text), uint64(i))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		body, ok := command(text)
		if !ok {
			t.Skip()
		}
		other := spell(rand.New(rand.NewPCG(seed, 0)), body)
		same, ok := command([]byte(other))
		if !ok {
			t.Fatalf("the other spelling of %s is not valid: %s", text, other)
		}
		if one, two := fingerprint(t, body), fingerprint(t, same); one != two {
			t.Fatalf("%s and %s have two fingerprints", text, other)
		}
	})
}

// Two commands never agree.
func FuzzTwoCommandsNeverAgree(f *testing.F) {
	for i, text := range tricky {
		f.Add([]byte(text), []byte(tricky[(i+1)%len(tricky)]))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		one, ok1 := command(first)
		two, ok2 := command(second)
		if !ok1 || !ok2 {
			t.Skip()
		}
		if got, want := fingerprint(t, one) == fingerprint(t, two), reflect.DeepEqual(one, two); got != want {
			t.Fatalf("%s and %s: one fingerprint %v, one command %v", first, second, got, want)
		}
		// What is hashed says all of the command: reading it gives the command back.
		canonical, err := idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/x", Body: one}.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			V, Account, Method, Path string
			Command                  any
		}
		if err := jsonv2.Unmarshal(canonical, &back, jsonv2.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back.Command, one) || back.V+back.Account+back.Method+back.Path != "v1acmePOST/v1/x" {
			t.Fatalf("%s became %s", first, canonical)
		}
	})
}

// command decodes what a request may hold: strict JSON whose numbers are integers within ±(2^53−1).
func command(text []byte) (body any, ok bool) {
	if err := jsonv2.Unmarshal(text, &body); err != nil {
		return nil, false
	}
	return body, integers(body)
}

func integers(v any) bool {
	switch v := v.(type) {
	case float64:
		return v == float64(int64(v)) && v >= -(1<<53-1) && v <= 1<<53-1
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !integers(e) })
	case map[string]any:
		for _, e := range v {
			if !integers(e) {
				return false
			}
		}
	}
	return true
}

func fingerprint(t *testing.T, body any) idempotency.Fingerprint {
	t.Helper()
	f, err := idempotency.Command{Account: "acme", Method: "POST", Path: "/v1/x", Body: body}.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// spell writes a value as JSON in some other way.
func spell(r *rand.Rand, v any) string {
	space := func() string { return []string{"", "", " ", "\n", "\t\r"}[r.IntN(5)] }
	var parts []string
	switch v := v.(type) {
	case string:
		return space() + spellText(r, v) + space()
	case []any:
		for _, e := range v {
			parts = append(parts, spell(r, e))
		}
		return space() + "[" + strings.Join(parts, ",") + space() + "]"
	case map[string]any:
		for name, e := range v { // in Go's order, which is none
			parts = append(parts, space()+spellText(r, name)+space()+":"+spell(r, e))
		}
		return space() + "{" + strings.Join(parts, ",") + space() + "}"
	case float64:
		return space() + fmt.Sprintf([]string{"%.0f", "%.1f", "%.17e"}[r.IntN(3)], v) + space()
	case nil:
		return space() + "null" + space()
	default:
		return space() + fmt.Sprint(v) + space()
	}
}

func spellText(r *rand.Rand, s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c < ' ' || c == '"' || c == '\\' || r.IntN(3) == 0:
			for _, unit := range utf16.Encode([]rune{c}) {
				fmt.Fprintf(&b, []string{`\u%04x`, `\u%04X`}[r.IntN(2)], unit)
			}
		case c == '/' && r.IntN(2) == 0:
			b.WriteString(`\/`)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
