package apidoc_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/apidoc"
)

const small = `
openapi: 3.1.0
info: {title: "<things>", version: v1, summary: "Things & more.", description: "First, with ` + "`a < b`" + `.\n\nSecond."}
tags: [{name: things, description: All of them.}]
paths:
  /z/{id}:
    put:
      tags: [things]
      operationId: putThing
      summary: Put a thing
      parameters:
        - {$ref: '#/components/parameters/Id'}
        - {name: q, in: query, schema: {type: integer, minimum: 1, maximum: 9, default: 5}}
      requestBody:
        content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}, example: {name: "</pre><script>alert(1)</script>"}}}
      responses:
        '200': {description: Done., headers: {Everywhere: {$ref: '#/components/headers/E'}, Sometimes: {description: At times.}}, content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}}}}
        '404': {$ref: '#/components/responses/None'}
  /a:
    get:
      tags: [things]
      operationId: a
      security: []
      summary: Read a
      responses:
        '200': {description: Read., headers: {Everywhere: {$ref: '#/components/headers/E'}}, content: {text/plain: {}}}
components:
  parameters:
    Id: {name: id, in: path, required: true, description: Which., schema: {type: string, pattern: '^[a-z]+$'}}
  headers:
    E: {description: The same.}
  responses:
    None: {description: There is none., headers: {Everywhere: {$ref: '#/components/headers/E'}}}
  schemas:
    Thing:
      description: What there is.
      type: object
      required: [name]
      additionalProperties: false
      properties:
        name: {type: string, minLength: 1, maxLength: 3}
        kind: {$ref: '#/components/schemas/Kind'}
        parts: {type: array, maxItems: 2, items: {$ref: '#/components/schemas/Thing'}}
    Kind: {enum: [good, bad], description: How it is.}
    More:
      $ref: '#/components/schemas/Thing'
      properties: {more: {type: boolean}}
`

var tag = regexp.MustCompile(`<[^>]*>`)

func TestPage(t *testing.T) {
	html, err := apidoc.Page([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	page := string(html)
	// What a person reads, tags left out and white space made one.
	text := strings.Join(strings.Fields(tag.ReplaceAllString(page[strings.Index(page, "<main>"):], " ")), " ")

	t.Run("tells everything in the order of the document", func(t *testing.T) {
		at := 0
		for _, want := range []string{
			"&lt;things&gt; v1 Things &amp; more. First, with a &lt; b . Second. Every answer has Everywhere .",
			"PUT /z/{id} GET /a", // the index
			"things All of them.",
			"PUT /z/{id} Put a thing.",
			"id path, required string , matches ^[a-z]&#43;$ Which.",
			"q query integer , 1 to 9 , default 5",
			"application/json : Thing", "alert(1)",
			"200 Done. application/json : Thing Sometimes At times.",
			"404 There is none.",
			"GET /a Read a. Needs no token.",
			"200 Read. text/plain",
			"Thing What there is.",
			"name string , 1 to 3 characters", "kind optional Kind", "parts optional list of Thing , at most 2 items",
			"Kind How it is. string , one of good, bad",
			"More All of Thing , and: more optional boolean",
		} {
			i := strings.Index(text[at:], want)
			if i < 0 {
				t.Fatalf("%q is not on the page, or not after what is before it:\n%s", want, text[at:])
			}
			at += i + len(want)
		}
	})

	t.Run("holds no markup of the document's and loads nothing", func(t *testing.T) {
		for _, bad := range []string{"<script", "</pre><s", "<things>", "http://", "https://", "src=", "onclick", "@import", "url("} {
			if strings.Contains(page, bad) {
				t.Errorf("it contains %q", bad)
			}
		}
	})
}

func TestADocumentThatCannotBeShownIsAnError(t *testing.T) {
	for name, change := range map[string][2]string{
		"no YAML":                     {"openapi: 3.1.0", "openapi: ["},
		"a parameter that is missing": {"parameters/Id'", "parameters/Ids'"},
		"a response that is missing":  {"responses/None'", "responses/Nothing'"},
		"a header that is missing":    {"headers/E'", "headers/F'"},
		"a header among the schemas":  {"headers/E'", "schemas/Thing'"},
	} {
		if html, err := apidoc.Page([]byte(strings.ReplaceAll(small, change[0], change[1]))); err == nil {
			t.Errorf("%s: no error, but %d bytes", name, len(html))
		}
	}
}
