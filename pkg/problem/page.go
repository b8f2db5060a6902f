package problem

import (
	"bytes"
	_ "embed"
	"html/template"
)

// PagePath is where a service answers with Page; a problem's type is a URL reference below it.
const PagePath = "/problems/"

//go:embed page.html
var pageHTML string

var page = template.Must(template.New("page").Parse(pageHTML))

// PageCSP is the Content-Security-Policy for Page: it loads nothing and runs nothing.
const PageCSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// TypeURL returns the type of the problems with this code: a reference relative to the service that answered.
func TypeURL(code Code) string {
	return PagePath + string(code)
}

// Page returns the HTML page that explains code to a person, or false if there is no such code.
func Page(code Code) ([]byte, bool) {
	entry, ok := Lookup(code)
	if !ok {
		return nil, false
	}
	var b bytes.Buffer
	if err := page.Execute(&b, entry); err != nil {
		panic(err) // the template and the catalogue are both ours: see the test
	}
	return b.Bytes(), true
}
