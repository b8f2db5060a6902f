package report

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/einmal/einmal/e2e/record"
)

var (
	uuids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{6}([0-9a-f]{6})`)
	digests = regexp.MustCompile(`\b([0-9a-f]{8})[0-9a-f]{56}\b`)
)

// labelMost is how many characters a text may have in a label.
const labelMost = 60

// shorten makes a text with ids and digests in it fit a label. Ids of one scenario begin alike and differ at their ends; digests differ at once.
func shorten(text string) string { return shortenTo(labelMost, text) }

func shortenTo(most int, text string) string {
	text = digests.ReplaceAllString(uuids.ReplaceAllString(text, "…$1"), "$1…")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '�'
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

var injected = regexp.MustCompile(`^inject=([^:]+):(signal|error)=([^:]+):when=(.+)$`)

// underStrace says in words what strace does to a process, for its argument.
func underStrace(argument string) string {
	found := injected.FindStringSubmatch(argument)
	if found == nil {
		return "started under " + argument
	}
	what := found[3] // an error
	if found[2] == "signal" {
		what = "SIG" + what
	}
	return fmt.Sprintf("started, %s at %s %s", what, strings.ReplaceAll(found[1], ",", " or "), ordinal(found[4]))
}

var nth = regexp.MustCompile(` (no\. \d+|from no\. \d+ on)$`)

func ordinal(when string) string {
	if first, on := strings.CutSuffix(when, "+"); on {
		return "from no. " + first + " on"
	}
	return "no. " + when
}

// memberOf is a text among the members of a JSON object, of which only the beginning may be known, or "".
func memberOf(body, name string) string {
	if !strings.HasPrefix(strings.TrimSpace(body), "{") {
		return ""
	}
	decoder := json.NewDecoder(strings.NewReader(body))
	depth, member := 0, ""
	for isName := true; ; {
		token, err := decoder.Token()
		if err != nil {
			return "" // it is cut here, or no JSON
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				depth++
			} else {
				depth--
			}
			isName = depth == 1
		case string:
			if depth == 1 && !isName && member == name {
				return token
			}
			if depth == 1 && isName {
				member = token
			}
			isName = !isName
		default:
			isName = !isName
		}
	}
}

// hungUp is why a caller who left got no answer.
const hungUp = "the caller hung up"

// whyNone says in a few words why there was no answer.
func whyNone(m record.Message) string {
	switch {
	case m.Fault == record.AnswerLost:
		return "answer lost"
	case m.Fault == record.RequestLost:
		return "no answer"
	case strings.Contains(m.Err, "context canceled"):
		return hungUp
	case strings.Contains(m.Err, "deadline exceeded"), strings.Contains(m.Err, "Timeout"):
		return "no answer in time"
	case strings.Contains(m.Err, "reset by peer"):
		return "connection reset"
	case strings.HasSuffix(m.Err, "EOF"):
		return "connection ended"
	}
	return "no answer"
}

func refusedConnection(err string) bool { return strings.Contains(err, "connection refused") }
