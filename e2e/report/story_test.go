package report_test

import (
	"fmt"
	"time"

	"github.com/einmal/einmal/e2e/record"
	"github.com/einmal/einmal/e2e/report"
	"github.com/einmal/einmal/services/simulator"
)

// noon is when the recordings of these tests begin.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(ms float64) time.Time { return noon.Add(time.Duration(ms * float64(time.Millisecond))) }

// The places of the small recording.
const (
	proxy   = "127.0.0.1:1001"
	tickets = "127.0.0.1:1002"
	desk    = "127.0.0.1:1003"
)

const (
	operation = "op_01a22e36-219e-7385-8239-833bf6193d6b"
	effectKey = "d26a87c82d17023f37b62999c0f237a9cce0da1e7b44e7a8b7cd407d79004769"
	reference = "desk_01a22e36-21b2-7134-ac2a-9207efd6e077"
)

// small is a recording with one of everything: a lost request, a lost answer, a replay, a kill, a send whose answer nobody hears, and a look-up.
func small() record.Recording {
	create := record.Message{To: proxy, Method: "POST", Path: "/v1/tickets", Key: "key-1", Body: `{"project":"ops","title":"Disk full"}`}
	message := func(from, to, conn string, sent, ended float64, change func(m *record.Message)) record.Message {
		m := create
		m.From, m.To, m.Conn, m.Sent, m.Ended = from, to, conn, at(sent), at(ended)
		change(&m)
		return m
	}
	none := func(m *record.Message) { m.Err = "read: connection reset by peer" }
	answered := func(outcome string) func(m *record.Message) {
		return func(m *record.Message) {
			m.Status, m.Outcome, m.Said = 201, outcome, `{"id":"tkt_1","title":"Disk full"}`
		}
	}
	fault := func(f record.Fault) func(m *record.Message) {
		return func(m *record.Message) { m.Fault, m.Err = f, "the proxy cut the connection" }
	}
	poll := func(sent float64, state string) record.Message {
		return record.Message{
			From: "caller 1", To: tickets, Method: "GET", Path: "/v1/operations/" + operation, Sent: at(sent), Ended: at(sent + 1),
			Status: 200, Said: `{"id":"` + operation + `","state":"` + state + `"}`,
		}
	}
	return record.Recording{
		Places: []record.Place{
			{Address: desk, Kind: record.Process, Name: "simulator"},
			{Address: tickets, Kind: record.Process, Name: "tickets"},
			{Address: proxy, Kind: record.Proxy, Name: "HTTP proxy", Before: []string{tickets}},
		},
		Marks: []record.Mark{
			{At: at(0), Place: desk, Event: record.Started},
			{At: at(1), Place: desk, Event: record.Ready},
			{At: at(1), Place: tickets, Event: record.Started},
			{At: at(2), Place: tickets, Event: record.Ready},
			{At: at(36), Place: tickets, Event: record.Killed},
			{At: at(37), Place: tickets, Event: record.Ended, Text: "signal: killed"},
			{At: at(40), Place: tickets, Event: record.Started},
			{At: at(50), Place: tickets, Event: record.Ready},
			{At: at(90), Place: tickets, Event: record.Ended, Text: "exit status 0"},
		},
		Messages: []record.Message{
			{From: "laboratory", To: desk, Method: "POST", Path: "/_faults", Sent: at(3), Ended: at(3), Status: 201, Body: `{"target":"desk","operation":"send","when":"after","action":"hang","times":1}`},
			message("", proxy, "c1", 10.1, 10.2, fault(record.RequestLost)), message("caller 1", proxy, "c1", 10, 10.3, none),
			message(proxy, tickets, "", 20.2, 24, answered("executed")), message("", proxy, "c2", 20.1, 24.1, fault(record.AnswerLost)),
			message("caller 1", proxy, "c2", 20, 24.2, none),
			message(proxy, tickets, "", 30.2, 31, answered("replayed")), message("", proxy, "c3", 30.1, 31.1, answered("replayed")),
			message("caller 1", proxy, "c3", 30, 31.2, answered("replayed")),
			poll(51, "running"), poll(53, "running"), poll(55, "running"), poll(80, "succeeded"),
		},
		Worlds: []record.World{{
			Address: desk,
			Calls: []simulator.Call{
				{Target: "desk", Kind: "send", EffectKey: effectKey, At: at(34), Faulted: true},
				{Target: "desk", Kind: "lookup", EffectKey: effectKey, At: at(71)},
			},
			Ledger: []simulator.Effect{{Target: "desk", Kind: "ticket", EffectKey: effectKey, Reference: reference, Account: "acme", At: at(35)}},
		}},
		Databases: []record.Database{{Name: "sqlite", Tables: []record.Table{
			{Name: "attempts", Columns: []string{"effect_id", "operation_id", "kind", "fence", "started_at", "ended_at", "outcome", "error", "reference"}, Total: 2, Rows: [][]any{
				{"eff_1", operation, "send", int64(1), at(33), nil, "", "", ""},
				{"eff_1", operation, "lookup", int64(2), at(70), at(73), "confirmed", "", reference},
			}},
			{Name: "effects", Columns: []string{"id", "operation_id", "target", "effect_key", "state", "fence", "doubt"}, Total: 1, Rows: [][]any{
				{"eff_1", operation, "desk", effectKey, "succeeded", int64(2), nil},
			}},
			{Name: "operations", Columns: []string{"id", "type", "state", "principal", "created_at"}, Total: 1, Rows: [][]any{
				{operation, "ticket.mirror", "succeeded", "caller 1", at(22)},
			}},
			{Name: "tickets", Columns: []string{"account_id", "title", "description"}, Total: 1, Rows: [][]any{{"acme", "Disk full", ""}}},
		}}},
	}
}

// scenario is one that was played with this recording.
func scenario(r record.Recording) report.Scenario {
	injected := 4
	return report.Scenario{
		Name: "small", Promise: "One of everything, once.", Verdict: report.Passed, Detail: "one request was lost; one answer was lost", Took: 91 * time.Millisecond,
		Injected: &injected, Effects: 1, Recording: r,
	}
}

// run is a run of these scenarios.
func run(scenarios ...report.Scenario) report.Run {
	r := report.Run{Version: "einmal v0 go1.26", Database: "embedded SQLite", Seed: 1, Began: noon, Took: 91 * time.Millisecond}
	for _, s := range scenarios {
		r.Sections = append(r.Sections, report.Tell(s))
	}
	return r
}

// polls is a caller who asks n times and gets the same answer, except that some requests are lost.
func polls(n, loseEvery int) record.Recording {
	r := record.Recording{Places: []record.Place{{Address: tickets, Kind: record.Process, Name: "tickets"}}}
	for i := range n {
		m := record.Message{
			From: "caller 1", To: tickets, Method: "GET", Path: "/v1/tickets", Key: fmt.Sprint("key-", i),
			Sent: at(float64(10 * i)), Ended: at(float64(10*i + 5)), Status: 200,
		}
		if loseEvery > 0 && i%loseEvery == 0 {
			m.Status, m.Err = 0, "EOF"
		}
		r.Messages = append(r.Messages, m)
	}
	return r
}
