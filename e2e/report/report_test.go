package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/e2e/record"
	"github.com/einmal/einmal/e2e/report"
)

var update = flag.Bool("update", false, "write testdata/small.html as the report is now")

func TestReportOfASmallRun(t *testing.T) {
	const golden = "testdata/small.html"
	failed := report.Scenario{Name: "broken", Promise: "It holds.", Verdict: report.Failed, Detail: "2 tickets, want 1", Log: "{\"level\":\"ERROR\"}\n", Effects: -1}
	got := written(t, run(scenario(small()), failed))
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-) is not what is written (+); if it is better so, go test ./e2e/report -update:\n%s", golden, diff)
	}
}

func TestWhatFailedComesFirstAndIsOpen(t *testing.T) {
	failed := report.Scenario{Name: "broken", Verdict: report.Failed, Detail: "2 tickets, want 1"}
	page := string(written(t, run(scenario(small()), failed)))
	first := regexp.MustCompile(`<details class="scenario [^>]*>`).FindString(page)
	if first != `<details class="scenario failed" id="broken" open="open">` {
		t.Errorf("first is %s", first)
	}
	if !strings.Contains(page, `<pre class="error">2 tickets, want 1</pre>`) || !strings.Contains(page, "1 of 2 scenarios failed") {
		t.Error("the error is not told")
	}
}

func TestReportIsWellFormedAndWhole(t *testing.T) {
	page := written(t, run(scenario(small()), scenario(polls(500, 7)), report.Scenario{Name: "empty", Verdict: report.Skipped}))
	for _, e := range elements(t, page) {
		for _, a := range e.Attr {
			switch {
			case a.Name.Local == "src" || a.Name.Local == "srcset" || a.Name.Local == "data" || a.Name.Local == "action":
				t.Errorf("<%s> has %s", e.Name.Local, a.Name.Local)
			case a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#"):
				t.Errorf("<%s> refers to %s", e.Name.Local, a.Value)
			}
		}
		if slices.Contains([]string{"link", "img", "iframe", "object", "image", "use", "base"}, e.Name.Local) {
			t.Errorf("there is a <%s>", e.Name.Local)
		}
	}
	names := regexp.MustCompile(`https?://[^"\s]*`).FindAllString(string(page), -1)
	for _, name := range names {
		if name != "http://www.w3.org/2000/svg" { // a name, which nobody fetches
			t.Errorf("it names %s", name)
		}
	}
	if style := regexp.MustCompile(`url\(|@import|fetch\(|XMLHttpRequest`).Find(page); style != nil {
		t.Errorf("it says %s", style)
	}
}

// Whatever a scenario, a caller or a service said: it is text.
func TestTextsFromOutsideAreEscaped(t *testing.T) {
	const evil = `"><img src=x onerror=alert(1)><script>alert(2)</script></title></svg></style>'` + "\x00\x1b\xff"
	r := small()
	for i := range r.Messages {
		m := &r.Messages[i]
		m.Path, m.Key, m.Body, m.Said, m.Outcome, m.Err = "/"+evil, evil, evil, evil, evil, evil
		if m.From == "caller 1" {
			m.From = "caller " + evil
		}
	}
	for i := range r.Marks {
		r.Marks[i].Text = evil
	}
	r.Places[1].Name, r.Places[2].Name = evil, evil
	r.Parts = []record.Part{{At: noon, Name: evil}}
	r.Worlds[0].Calls[0].Kind, r.Worlds[0].Calls[0].Target, r.Worlds[0].Ledger[0].Reference = evil, evil, evil
	for _, table := range r.Databases[0].Tables {
		for _, row := range table.Rows {
			row[0] = evil
		}
	}
	r.Databases[0].Tables[0].Name = evil
	r.Worlds = append(r.Worlds, record.World{Address: "other", Err: evil})
	r.Databases = append(r.Databases, record.Database{Name: evil, Err: evil})
	s := scenario(r)
	s.Name, s.Promise, s.Detail, s.Log = evil, evil, evil, evil
	failed := s
	failed.Verdict = report.Failed
	evilRun := run(s, failed)
	evilRun.Version, evilRun.Database = evil, evil

	page := written(t, evilRun)
	scripts := 0
	for _, e := range elements(t, page) {
		switch e.Name.Local {
		case "script":
			scripts++
		case "img":
			t.Error("a text has become an <img>")
		}
		for _, a := range e.Attr {
			if strings.HasPrefix(a.Name.Local, "on") {
				t.Errorf("<%s> has %s", e.Name.Local, a.Name.Local)
			}
		}
	}
	if scripts != 1 {
		t.Errorf("%d scripts, want ours alone", scripts)
	}
}

func written(t *testing.T, r report.Run) []byte {
	t.Helper()
	var page bytes.Buffer
	if err := report.Write(&page, r); err != nil {
		t.Fatal(err)
	}
	return page.Bytes()
}

// elements are the elements of a page, which must be well-formed: as XML, which forgives nothing. Scripts and styles are text to HTML.
func elements(t *testing.T, page []byte) (all []xml.StartElement) {
	t.Helper()
	page = regexp.MustCompile(`(?s)<script>.*?</script>`).ReplaceAll(page, []byte("<script></script>"))
	decoder := xml.NewDecoder(bytes.NewReader(page))
	decoder.Entity = xml.HTMLEntity
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		if start, ok := token.(xml.StartElement); ok {
			all = append(all, start.Copy())
		}
	}
}
