package report

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/record"
)

// laboratory is who directs simulators; what it does is no message of the scenario.
const laboratory = "laboratory"

// tone is what a step means. It is the name of its colour in page.css.
type tone string

const (
	plain  tone = "plain"
	effect tone = "effect" // something happened, for the first time
	replay tone = "replay" // known already, and told again
	wait   tone = "wait"   // nobody knows yet
	refuse tone = "refuse" // no, and why
	broken tone = "broken" // a fault, or what it cost
)

// step is one line of a diagram: an arrow between two places, or a mark at one.
type step struct {
	at       time.Time
	from, to string // addresses, or names of callers; a mark has no to
	label    string
	details  []string // the keys that it is about; several when equal steps were folded
	title    string   // shown when pointed at
	tone     tone
	answer   bool  // an arrow back
	lost     bool  // an arrow that did not arrive
	dull     bool  // of no interest by itself: a process that is ready, or leaves
	times    int   // how often, when equal steps were folded
	pairs    []int // what it belongs to: a request and its answer have a number in common
	omitted  int   // no step, but so many that are left out here
}

func (s step) isMark() bool { return s.to == "" && s.omitted == 0 }

// story is a recording in order of time.
type story struct {
	record.Recording
	lives    lives
	attempts []*attempt
	calls    []*call
	byKey    map[string][]*attempt // attempts by effect key
	steps    []step

	exchanges int
}

func tell(r record.Recording) story {
	r = reuse(r)
	s := story{Recording: r, lives: livesOf(r)}
	s.readOutside()
	s.tellMarks()
	s.tellMessages()
	s.tellOutside()
	// What is noted as of the same moment stays in the order in which it was told: a request before its answer.
	slices.SortStableFunc(s.steps, func(a, b step) int { return a.at.Compare(b.at) })
	return s
}

// add adds the steps of one exchange.
func (s *story) add(all ...step) {
	s.exchanges++
	for _, one := range all {
		one.times, one.pairs = 1, []int{s.exchanges}
		s.steps = append(s.steps, one)
	}
}

// tellMessages tells what callers, proxies and the laboratory sent. What a proxy received is told by whoever sent it, if that was recorded.
func (s *story) tellMessages() {
	received := map[[2]string]record.Message{} // by proxy and connection
	for _, m := range s.Messages {
		if m.From == "" {
			received[[2]string{m.To, m.Conn}] = m
		}
	}
	for _, m := range s.Messages {
		switch m.From {
		case "":
		case laboratory:
			s.add(directed(m))
		default:
			if arrival, atProxy := received[[2]string{m.To, m.Conn}]; atProxy {
				delete(received, [2]string{m.To, m.Conn})
				m.Fault = arrival.Fault
			}
			s.tellMessage(m)
		}
	}
	for _, m := range s.Messages {
		if _, unsent := received[[2]string{m.To, m.Conn}]; unsent && m.From == "" {
			s.tellForeign(m)
		}
	}
}

// tellMessage tells a request, what a proxy did to it, and its answer.
func (s *story) tellMessage(m record.Message) {
	request := step{at: m.Sent, from: m.From, to: m.To, label: m.Method + " " + shorten(m.Path), title: m.Body, tone: plain}
	if m.Key != "" {
		request.details = []string{shorten(m.Key)}
	}
	if refusedConnection(m.Err) {
		request.lost, request.tone, request.label = true, broken, request.label+", nobody there"
		s.add(request)
		return
	}
	s.add(slices.Concat([]step{request}, s.faultOf(m), []step{answerOf(m)})...)
}

// faultOf tells what a proxy does to a message that has come to it.
func (s *story) faultOf(m record.Message) (steps []step) {
	switch m.Fault {
	case record.RequestLost:
		for _, target := range s.lives.before(m.To) {
			steps = append(steps, step{at: m.Sent, from: m.To, to: target, label: "request lost", tone: broken, lost: true})
		}
	case record.Held, record.Resent, record.AnswerCut:
		steps = append(steps, step{at: m.Sent, from: m.To, label: string(m.Fault), tone: broken})
	}
	return steps
}

func answerOf(m record.Message) step {
	answer := step{at: m.Ended, from: m.To, to: m.From, answer: true, tone: plain, title: m.Said}
	if m.Status == 0 {
		answer.lost, answer.tone, answer.label, answer.title = true, broken, whyNone(m), m.Err
		return answer
	}
	said := m.Outcome
	for _, member := range []string{"code", "state"} {
		if said == "" || member == "code" && m.Status >= http.StatusBadRequest {
			said = cmp.Or(memberOf(m.Said, member), said)
		}
	}
	answer.label = strings.TrimSpace(fmt.Sprintf("%d %s", m.Status, said))
	if m.Status == http.StatusServiceUnavailable && memberOf(m.Said, "effect") == "unknown" {
		answer.label += ", effect unknown"
	}
	answer.tone = toneOf(m.Status, m.Outcome)
	return answer
}

func toneOf(status int, outcome string) tone {
	switch {
	case outcome == "executed" || outcome == "accepted":
		return effect
	case outcome == "replayed":
		return replay
	case outcome == "in_progress" || status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		return wait
	case status >= http.StatusInternalServerError:
		return broken
	case status >= http.StatusBadRequest:
		return refuse
	}
	return plain
}
