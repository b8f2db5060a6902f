// Package apidoc makes a page for people of an OpenAPI 3.1 document: one HTML text without scripts, that loads nothing.
//
// It is no viewer of documents in general. It shows what the documents of these services use, in their order, and refuses a
// reference that leads nowhere. A viewer from a package registry was the other choice: the common ones are a megabyte and more of
// generated script and styles, to be kept up to date and allowed by the Content-Security-Policy, for what is a table.
package apidoc

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"

	"go.yaml.in/yaml/v4"
)

// CSP is the Content-Security-Policy for Page: it loads nothing and runs nothing.
const CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed page.html
var pageHTML string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"prose": prose, "paragraphs": paragraphs, "json": indented, "upper": strings.ToUpper,
}).Parse(pageHTML))

// Page returns the page about a document, or an error that says what in it can't be shown.
func Page(openAPI []byte) ([]byte, error) {
	var d document
	if err := yaml.Unmarshal(openAPI, &d); err != nil {
		return nil, fmt.Errorf("read openapi: %w", err)
	}
	if err := d.resolve(); err != nil {
		return nil, fmt.Errorf("read openapi: %w", err)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, &d); err != nil {
		return nil, fmt.Errorf("make page of openapi: %w", err)
	}
	return b.Bytes(), nil
}

// prose is a description as HTML: what stands between backticks is code.
func prose(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(strings.TrimSpace(text), "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String()) // every part of it is escaped above
}

// paragraphs are what empty lines divide.
func paragraphs(text string) []string { return strings.Split(strings.TrimSpace(text), "\n\n") }

func indented(v any) (string, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return string(text), err
}
