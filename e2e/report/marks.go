package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/einmal/einmal/e2e/record"
)

// tellMarks tells what happened to processes and at places.
func (s *story) tellMarks() {
	for i, m := range s.Marks {
		mark := step{at: m.At, from: m.Place, tone: plain, title: m.Text}
		switch m.Event {
		case record.Started:
			if m.Text == "" {
				continue // that it is ready will be told
			}
			mark.label, mark.tone = underStrace(m.Text), broken
		case record.Ready:
			mark.label, mark.dull = "ready", true
		case record.Killed:
			if s.lastAt(i) == record.Ended {
				continue // to be sure of it
			}
			mark.label, mark.tone = "killed (SIGKILL)", broken
		case record.Frozen:
			mark.label, mark.tone = "frozen (SIGSTOP)", broken
		case record.Thawed:
			mark.label, mark.tone = "goes on (SIGCONT)", wait
		case record.Ended:
			if s.lastAt(i) == record.Killed {
				continue // told as that
			}
			mark.label, mark.tone = "ended: "+m.Text, broken
			if m.Text == "exit status 0" {
				mark.label, mark.tone, mark.dull = "left", plain, true
			}
		case record.Struck:
			mark.label, mark.tone = m.Text, broken
		case record.Healed:
			mark.label, mark.tone = m.Text, plain
		}
		s.add(mark)
	}
}

// lastAt is what happened at the place of a mark before it.
func (s *story) lastAt(mark int) record.Event {
	for i := mark - 1; i >= 0; i-- {
		if s.Marks[i].Place == s.Marks[mark].Place {
			return s.Marks[i].Event
		}
	}
	return ""
}

// directed tells what the laboratory asked a simulator to do.
func directed(m record.Message) step {
	mark := step{at: m.Sent, from: m.To, tone: plain, title: m.Body}
	switch {
	case m.Path == "/_faults" && m.Method == http.MethodPost:
		mark.label, mark.tone = "armed: "+armed(m.Body), wait
	case m.Path == "/_faults":
		mark.label, mark.dull = "faults disarmed", true
	case m.Path == "/_abilities":
		mark.label, mark.dull = "can: "+abilities(m.Body), true
	default:
		mark.label = m.Method + " " + m.Path
	}
	return mark
}

// armed says in words what a fault of a simulator will do.
func armed(body string) string {
	var f struct {
		Operation, When, Action string
		Status, Times           int
		DelayMS                 int `json:"delay_ms"`
	}
	if json.Unmarshal([]byte(body), &f) != nil {
		return "a fault"
	}
	what := fmt.Sprintf("%s %s", cmp.Or(f.When, "at"), cmp.Or(f.Operation, "any call"))
	switch {
	case f.Status != 0:
		what = fmt.Sprintf("%d %s", f.Status, what)
	case f.DelayMS != 0:
		what = fmt.Sprintf("%d ms delay %s", f.DelayMS, what)
	default:
		what = f.Action + " " + what
	}
	const always = 1_000_000
	switch {
	case f.Times >= always:
		what += ", every time"
	case f.Times > 1:
		what += fmt.Sprintf(", %d times", f.Times)
	}
	return what
}

// abilities says in words what a simulator can.
func abilities(body string) string {
	var can struct {
		Keys          string
		Lookup, Close bool
		LagMS         int `json:"lag_ms"`
	}
	if json.Unmarshal([]byte(body), &can) != nil {
		return "something else"
	}
	var all []string
	if can.Keys == "honour" {
		all = append(all, "keys")
	}
	if can.Lookup && can.LagMS > 0 {
		all = append(all, fmt.Sprintf("look-up after %d ms", can.LagMS))
	} else if can.Lookup {
		all = append(all, "look-up")
	}
	if can.Close {
		all = append(all, "close")
	}
	return cmp.Or(strings.Join(all, ", "), "nothing")
}
