package scenarios

import (
	"fmt"
	"strings"
)

// with is a ticket's command with one more member.
func with(member string) string { return `{"project":"ops","title":"t",` + member + `}` }

// malformedJSON are bodies that are not one JSON object, by what is wrong with them.
func malformedJSON() map[string]string {
	return map[string]string{
		"only white space":                  "  \n",
		"cut off":                           `{"project":"ops","title":"t"`,
		"an array":                          `[{"project":"ops","title":"t"}]`,
		"a text":                            `"ops"`,
		"null":                              `null`,
		"a member twice":                    with(`"title":"u"`),
		"a member twice, spelled otherwise": with(`"titl\u0065":"u"`),
		"a nested member twice":             with(`"labels":{"a":"1","a":"2"}`),
		"invalid UTF-8":                     with(`"description":"` + "\xff" + `"`),
		"overlong UTF-8":                    with(`"description":"` + "\xc0\xaf" + `"`),
		"a lone surrogate":                  with(`"description":"\ud800"`),
		"U+0000":                            with(`"description":"\u0000"`),
		"U+0000 in a member's name":         with(`"labels":{"a\u0000":"1"}`),
		"a second object":                   with(`"priority":"low"`) + `{}`,
		"something after it":                with(`"priority":"low"`) + `x`,
		"a comment":                         with(`"priority":"low" /* urgent */`),
		"NaN":                               with(`"description":NaN`),
		"single quotation marks":            `{'project':'ops'}`,
		"a trailing comma":                  `{"project":"ops","title":"t",}`,
		"a byte order mark":                 "\ufeff" + with(`"priority":"low"`),
	}
}

// invalidCommands are JSON objects that are no valid command, with the places of which all must be named as wrong.
func (s *Stage) invalidCommands() map[string][]string {
	labels := make([]string, 33)
	for i := range labels {
		labels[i] = fmt.Sprintf(`"l%d":"v"`, i)
	}
	return map[string][]string{
		`{}`: {"/project", "/title"},
		`{"project":"Ops!","title":"","priority":1}`:                   {"/project", "/title", "/priority"},
		`{"project":"-ops","title":null}`:                              {"/project", "/title"},
		with(`"sourceEventId":"e"`):                                    {"/sourceEventId"},
		with(`"Priority":"low"`):                                       {"/Priority"},
		with(`"priority":"Low"`):                                       {"/priority"},
		with(`"priority":""`):                                          {"/priority"},
		with(`"priority":null`):                                        {"/priority"},
		with(`"priority":["low"]`):                                     {"/priority"},
		with(`"description":42`):                                       {"/description"},
		with(`"description":9007199254740993`):                         {"/description"},
		with(`"labels":[]`):                                            {"/labels"},
		with(`"labels":{"a":1,"b":null,"c":{}}`):                       {"/labels/a", "/labels/b", "/labels/c"},
		with(`"labels":{` + strings.Join(labels, ",") + `}`):           {"/labels"},
		with(`"source_event_id":""`):                                   {"/source_event_id"},
		with(`"source_event_id":" e"`):                                 {"/source_event_id"},
		with(`"source_event_id":"e\t"`):                                {"/source_event_id"},
		with(`"source_event_id":"` + s.text(256) + `"`):                {"/source_event_id"},
		`{"project":"ops","title":"` + strings.Repeat("ü", 201) + `"}`: {"/title"},
		`{"project":"` + strings.Repeat("a", 64) + `","title":"t"}`:    {"/project"},
		with(`"description":"` + strings.Repeat("ü", 250_001) + `"`):   {"/description"},
	}
}
