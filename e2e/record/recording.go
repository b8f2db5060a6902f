package record

import (
	"time"

	"github.com/einmal/einmal/services/simulator"
)

// Recording is what one scenario has left: what passed while it ran, and what was found when it was over.
type Recording struct {
	Places    []Place
	Messages  []Message
	Marks     []Mark
	Parts     []Part
	Worlds    []World
	Databases []Database
	Dropped   int // messages and marks that came when the log was full
}

// Kind is what stands at a place.
type Kind string

const (
	Process Kind = "process" // of the binary under test
	Proxy   Kind = "proxy"   // a fault that stands in front of something
	Store   Kind = "store"   // a database that is broken from outside
)

// Place is where messages arrive and faults happen.
type Place struct {
	Address string // host:port, or the path of a file
	Kind    Kind
	Name    string   // the role of a process, else what it is
	Before  []string // of a proxy: the addresses that it stands in front of
}

// Agent is where agents are, one after the other: processes that call.
const Agent = "agent"

// Message is one HTTP request and what its sender got for it. One that passes a proxy is noted by whoever sent it and by the proxy twice: as it came,
// and as it was passed on. Conn tells which two are the same.
type Message struct {
	From    string // a caller's name or the address of a proxy; empty: whoever connected
	To      string // host:port
	Conn    string // the sender's end of the connection
	Method  string
	Path    string
	Key     string // Idempotency-Key
	Body    string // its beginning
	Sent    time.Time
	Ended   time.Time
	Status  int    // 0: there was no answer
	Outcome string // Idempotency-Outcome
	Said    string // the beginning of the answer's body
	Err     string // why there was no answer
	Fault   Fault  // what a proxy did to it
}

// Fault is what a proxy does to a message.
type Fault string

const (
	RequestLost Fault = "request lost"
	AnswerLost  Fault = "answer lost"
	AnswerCut   Fault = "answer cut off"
	Resent      Fault = "sent to every target at once"
	Held        Fault = "held on the road"
)

// Mark is something that happened at a place: to a process, or a fault that is no message.
type Mark struct {
	At    time.Time
	Place string // its address
	Event Event
	Text  string // says more
}

// Event is the kind of a mark.
type Event string

const (
	Started Event = "started"
	Ready   Event = "ready"
	Killed  Event = "killed" // SIGKILL
	Frozen  Event = "frozen" // SIGSTOP
	Thawed  Event = "thawed" // SIGCONT
	Ended   Event = "ended"
	Struck  Event = "struck" // by a fault that Text tells
	Healed  Event = "healed" // the fault is over
)

// Part is a part of the scenario, which begins here.
type Part struct {
	At   time.Time
	Name string
}

// World is a simulator as it was when the scenario was over: its own word on what arrived and what really happened.
type World struct {
	Address string
	Calls   []simulator.Call
	Ledger  []simulator.Effect
	Err     string // why it could not be read
}

// Database is what was found in a database when the scenario was over.
type Database struct {
	Name   string
	Behind time.Duration // how much earlier its clock says it is
	Tables []Table
	Err    string // why it could not be read
}

// Table is some rows of a table, the first that were made.
type Table struct {
	Name    string
	Columns []string
	Rows    [][]any // nil, text, number, truth, time.Time
	Total   int
}
