package idemhttp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/database"
	"github.com/einmal/einmal/pkg/idempotency/idemhttp"
	"github.com/einmal/einmal/pkg/problem"
)

func TestABodyIsOneJSONObject(t *testing.T) {
	for name, body := range map[string]string{
		"empty":                            "",
		"only white space":                 " \r\n\t",
		"no JSON":                          "name=a",
		"a text":                           `"name"`,
		"a number":                         "1",
		"null":                             "null",
		"true":                             "true",
		"an array":                         `[{"name":"a"}]`,
		"an open object":                   `{"name":"a"`,
		"an open text":                     `{"name":"a`,
		"half a word":                      "tru",
		"a trailing comma":                 `{"name":"a",}`,
		"a missing comma":                  `{"name":"a" "count":1}`,
		"single quotes":                    `{'name':'a'}`,
		"a comment":                        `{"name":"a"} // b`,
		"a name without quotes":            `{name:"a"}`,
		"a number with a leading zero":     `{"count":01}`,
		"a number with a plus":             `{"count":+1}`,
		"a hexadecimal number":             `{"count":0x1}`,
		"NaN":                              `{"count":NaN}`,
		"infinity":                         `{"count":-Infinity}`,
		"a control character in a text":    "{\"name\":\"a\nb\"}",
		"an unknown escape":                `{"name":"\x41"}`,
		"a second object":                  `{"name":"a"}{"name":"b"}`,
		"a second object, apart":           `{"name":"a"} {"name":"b"}`,
		"a word after it":                  `{"name":"a"} b`,
		"a number after it":                `{"name":"a"}1`,
		"a bracket after it":               `{"name":"a"}}`,
		"a NUL after it":                   "{\"name\":\"a\"}\x00",
		"a form feed after it":             "{\"name\":\"a\"}\f",
		"a no-break space after it":        "{\"name\":\"a\"}\u00a0",
		"a byte order mark before it":      "\ufeff{\"name\":\"a\"}",
		"UTF-16":                           "{\x00\"\x00n\x00\"\x00:\x001\x00}\x00",
		"a member twice":                   `{"name":"a","name":"b"}`,
		"a member twice, equal":            `{"name":"a","name":"a"}`,
		"a member twice by escapes":        `{"name":"a","n\u0061me":"a"}`,
		"a nested member twice":            `{"name":"a","owner":{"team":"a","team":"b"}}`,
		"a member twice in a list":         `{"name":"a","parts":[{"team":"a"},{"pager":1,"pager":2}]}`,
		"an unknown member twice":          `{"name":"a","x":{"y":[{"z":1,"z":1}]}}`,
		"invalid UTF-8":                    "{\"name\":\"a\xff\"}",
		"invalid UTF-8 in a name":          "{\"na\xffme\":\"a\"}",
		"overlong UTF-8":                   "{\"name\":\"\xc0\x80\"}",
		"a surrogate in UTF-8":             "{\"name\":\"\xed\xa0\x80\"}",
		"a lone high surrogate":            `{"name":"\ud800"}`,
		"a lone low surrogate":             `{"name":"\udc00"}`,
		"surrogates in the wrong order":    `{"name":"\udc00\ud800"}`,
		"a high surrogate before a letter": `{"name":"\ud800a"}`,
		"a lone surrogate in a name":       `{"\ud800":1}`,
		"U+0000":                           `{"name":"a\u0000b"}`,
		"U+0000 in a name":                 `{"a\u0000b":1}`,
		"U+0000 in a label":                `{"name":"a","labels":{"\u0000":"a"}}`,
		"U+0000 far inside":                `{"name":"a","x":[[{"y":"\u0000"}]]}`,
		"a text in the wrong place too":    `{"name":null,"count":"x","name":1}`, // syntax comes alone
		"too deep":                         `{"x":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
		"deep and open":                    strings.Repeat(`{"x":`, 10_001),
	} {
		err := idemhttp.Decode([]byte(body), newThing())
		var p *problem.Problem
		if !errors.As(err, &p) || p.Code != problem.MalformedBody || p.Status != 400 || len(p.Errors) > 0 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(p.Detail) > 200 {
			t.Errorf("%s: the detail repeats what was sent: %s", name, p.Detail)
		}
	}
}

func TestWhatADecodedCommandHolds(t *testing.T) {
	note := "n"
	for name, c := range map[string]struct {
		body string
		want func(*createThing)
	}{
		"the defaults of what is absent": {`{"name":"a"}`, func(*createThing) {}},
		"text as it was sent, escapes resolved": {
			`{"name":" \u0061\n\ud83d\ude00é\ue000\uffff\"\/ "}`,
			func(c *createThing) { c.Name = " a\n\U0001F600é\ue000\uffff\"/ " },
		},
		"the largest number": {`{"name":"a","count":9007199254740991}`, func(c *createThing) { c.Count = 1<<53 - 1 }},
		"the smallest":       {`{"name":"a","count":-9007199254740991}`, func(c *createThing) { c.Count = -(1<<53 - 1) }},
		"minus nothing":      {`{"name":"a","count":-0}`, func(*createThing) {}},
		"an optional member": {`{"name":"a","note":"n"}`, func(c *createThing) { c.Note = &note }},
		"a list in place of the default one": {
			`{"name":"a","tags":["x","y"]}`,
			func(c *createThing) { c.Tags = []string{"x", "y"} },
		},
		"an empty list in place of the default one": {`{"name":"a","tags":[]}`, func(c *createThing) { c.Tags = []string{} }},
		"a part of an object, with its defaults":    {`{"name":"a","owner":{"pager":7}}`, func(c *createThing) { c.Owner.Pager = 7 }},
		"lists of objects":                          {`{"name":"a","parts":[{},{"team":"t"}]}`, func(c *createThing) { c.Parts = []owner{{}, {Team: "t"}} }},
		"names of any text": {
			`{"name":"a","labels":{"":"1","/~":"2","Name":"3"}}`,
			func(c *createThing) { c.Labels = map[string]string{"": "1", "/~": "2", "Name": "3"} },
		},
	} {
		got, want := newThing(), newThing()
		want.Name = "a"
		c.want(want)
		if err := idemhttp.Decode([]byte(c.body), got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// Each case has every violation, in order, as "pointer: detail".
func TestEverythingThatIsWrongIsTold(t *testing.T) {
	const (
		null    = "must not be null: it has a value, or, where it may be absent, is left out"
		text    = "must be a text in quotation marks"
		number  = "must be a number"
		object  = "must be an object"
		array   = "must be an array"
		unknown = "is not a member of this command"
		whole   = "must be a whole number between -9007199254740991 and 9007199254740991, without fraction or exponent"
	)
	for body, want := range map[string][]string{
		`{}`:          {"/name: is missing: it must not be empty"},
		`{"name":""}`: {"/name: must not be empty"},

		// Every wrong type; the rules of the command itself come last, and only for what has the right type.
		`{"name":1,"count":"1","small":{},"urgent":"true","kind":[],"note":1,"labels":[],"tags":{},"owner":"x","parts":1}`: {
			"/name: " + text, "/count: " + number, "/small: " + number, "/urgent: must be true or false", "/kind: " + text,
			"/note: " + text, "/labels: " + object, "/tags: " + array, "/owner: " + object, "/parts: " + array,
		},
		`{"name":true,"count":1001}`: {"/name: " + text, "/count: must be at most 1000"},
		`{"name":"a","urgent":1}`:    {"/urgent: must be true or false"},
		`{"name":"a","urgent":0}`:    {"/urgent: must be true or false"},

		// null, wherever.
		`{"name":null,"note":null,"labels":{"a":null},"tags":["x",null],"owner":{"team":null},"parts":[null],"x":{"y":[null]}}`: {
			"/name: " + null, "/note: " + null, "/labels/a: " + null, "/tags/1: " + null, "/owner/team: " + null, "/parts/0: " + null,
			"/x/y/0: " + null, "/x: " + unknown,
		},

		// Numbers that are not the same everywhere.
		`{"name":"a","count":9007199254740992}`:                  {"/count: " + whole},
		`{"name":"a","count":-9007199254740992}`:                 {"/count: " + whole},
		`{"name":"a","count":9007199254740993}`:                  {"/count: " + whole},
		`{"name":"a","count":9223372036854775808}`:               {"/count: " + whole},
		`{"name":"a","count":1` + strings.Repeat("0", 400) + `}`: {"/count: " + whole},
		`{"name":"a","count":1.0}`:                               {"/count: " + whole},
		`{"name":"a","count":1.5}`:                               {"/count: " + whole},
		`{"name":"a","count":1e3}`:                               {"/count: " + whole},
		`{"name":"a","count":1E0}`:                               {"/count: " + whole},
		`{"name":"a","count":-0.0}`:                              {"/count: " + whole},
		`{"name":"a","owner":{"pager":1.5}}`:                     {"/owner/pager: " + whole},
		`{"name":"a","small":128}`:                               {"/small: is out of range"},
		`{"name":"a","small":-129}`:                              {"/small: is out of range"},

		// Unknown members; with a hint where only the case is wrong.
		`{"name":"a","Count":1}`:                      {`/Count: is not a member of this command; did you mean "count"?`},
		`{"Name":"a"}`:                                {`/Name: is not a member of this command; did you mean "name"?`}, // and not that it is missing
		`{"name":"a","NAME":"b"}`:                     {`/NAME: is not a member of this command; did you mean "name"?`},
		`{"name":"a","labels":{},"owner":{"TEAM":1}}`: {`/owner/TEAM: is not a member of this command; did you mean "team"?`},
		`{"name":"a","parts":[{"x":1},{"team":2}]}`:   {"/parts/0/x: " + unknown, "/parts/1/team: " + text},
		`{"name":"a","x":1,"":2,"name ":3}`:           {"/x: " + unknown, "/: " + unknown, "/name : " + unknown},
		`{"name":"a","-":"b","Inner":"c"}`:            {"/-: " + unknown, "/Inner: " + unknown},

		// Pointers are escaped (RFC 6901).
		`{"name":"a","a/b~c":1,"~1":2}`:                  {"/a~1b~0c: " + text, "/~01: " + unknown},
		`{"name":"a","labels":{"x/y":1,"m~n":{},"":[]}}`: {"/labels/x~1y: " + text, "/labels/m~0n: " + text, "/labels/: " + text},
		`{"name":"a","tags":["x",1,{},"y",[]]}`:          {"/tags/1: " + text, "/tags/2: " + text, "/tags/4: " + text},
	} {
		err := idemhttp.Decode([]byte(body), newThing())
		var p *problem.Problem
		if !errors.As(err, &p) || p.Code != problem.ValidationFailed || p.Status != 422 {
			t.Errorf("%s: %v", body, err)
			continue
		}
		var got []string
		for _, v := range p.Errors {
			got = append(got, v.Pointer+": "+v.Detail)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", body, diff)
		}
	}
}

func TestNothingOfAWrongBodyIsStored(t *testing.T) {
	s := start(t, database.SQLite)
	expect(t, "malformed", s.post(t, key("k"), `{"name":"a","name":"b"}`), 400, problem.MalformedBody)
	expect(t, "empty", s.post(t, key("k"), " "), 400, problem.MalformedBody)
	expect(t, "invalid", s.post(t, key("k"), `{"name":"a","x":1}`), 422, problem.ValidationFailed)
	s.keepsNothing(t)
	if a := s.post(t, key("k"), thing); a.Outcome() != "executed" {
		t.Errorf("the key was used up: %s", a)
	}
}

// However a body is made, judging it takes about as long as reading it, and the answer about it is not many times as large: a
// caller must not be able to keep a processor busy for minutes with one request.
func TestTheWorstBodiesAreJudgedFast(t *testing.T) {
	const size = idemhttp.MaxBody / 4 // enough for minutes where the time is a product
	many := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	const half = size / 2
	for name, body := range map[string]string{
		"numbers far inside":         `{"x":` + strings.Repeat("[", 9000) + strings.Repeat("0,", half) + "0" + strings.Repeat("]", 9000) + `}`,
		"numbers behind a long name": `{"` + strings.Repeat("x", half) + `":[` + strings.Repeat("0,", half/2) + `0]}`,
		"nulls behind a long name":   `{"` + strings.Repeat("x", half) + `":[` + strings.Repeat("null,", half/5) + `0]}`,
		"nulls":                      `{"tags":[` + strings.Repeat("null,", half/3) + `"a"]}`,
		"wrong types":                `{"tags":[` + strings.Repeat("1,", half) + `"a"]}`,
		"unknown members":            `{` + many(`"x%d":1,`) + `"name":"a"}`,
		"unknown members of parts":   `{"parts":[` + strings.Repeat(`{"x":1},`, half/5) + `{}]}`,
		"labels":                     `{"labels":{` + many(`"x%d":1,`) + `"x":"a"}}`,
	} {
		began := time.Now()
		err := idemhttp.Decode([]byte(body), newThing())
		// Some hundredths of a second without the race detector.
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
		var p *problem.Problem
		if !errors.As(err, &p) || p.Code != problem.ValidationFailed {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if answer := len(p.JSON()); answer > 2*size {
			t.Errorf("%s: %d bytes of answer to %d bytes", name, answer, len(body))
		}
	}
}
