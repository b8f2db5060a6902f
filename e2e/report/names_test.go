package report_test

import (
	"testing"

	"github.com/einmal/einmal/e2e/report"
)

func TestMemberOfABodyThatIsCut(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":"op_1","state":"running","effect":"unknown"}`:         "running",
		`{"id":"tkt_1","mirror":{"state":"queued"},"n":1}`:           "", // of something else
		`{"a":[{"state":"x"}],"b":{"c":"state"},"state":"failed"`:    "failed",
		`{"a":null,"b":true,"c":1.5,"d":"state","state":"canceled"}`: "canceled",
		`{"id":"op_1","state":"runn…`:                                "",
		`["state","running"]`:                                        "",
		`no JSON`:                                                    "",
		``:                                                           "",
	} {
		if got := report.MemberOf(body, "state"); got != want {
			t.Errorf("the state in %s is %q, want %q", body, got, want)
		}
	}
}
