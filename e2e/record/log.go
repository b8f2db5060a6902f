package record

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// most is how many messages and marks are kept: ten times what the longest scenario has, and a few megabytes.
	most = 20_000

	// textMost is how many bytes of a body, or any other text, are kept: enough to see which command it is, and the code of a problem.
	textMost = 500
)

// Log records one scenario. It may be used by any number of goroutines; those of a nil Log record nothing.
type Log struct {
	mu      sync.Mutex
	kept    Recording
	callers []caller // the longest token first, since one may begin with another
	closed  bool
}

// caller is whose token it is. The token never becomes part of the recording.
type caller struct{ token, name string }

// New makes an empty log.
func New() *Log { return &Log{} }

type contextKey struct{}

// Into is a context in which everything is recorded in the log.
func Into(ctx context.Context, log *Log) context.Context {
	return context.WithValue(ctx, contextKey{}, log)
}

// From is the log of a context, nil if nothing is recorded.
func From(ctx context.Context) *Log {
	log, _ := ctx.Value(contextKey{}).(*Log)
	return log
}

// Caller names the caller who has this token, without telling it: callers are numbered as they come. From then on the name stands wherever the token
// would, in bodies and in rows too: demo identities are called as their tokens are.
func (l *Log) Caller(token string) string {
	if l == nil {
		return ""
	}
	if token == "" {
		return "anonymous"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.callers {
		if c.token == token {
			return c.name
		}
	}
	c := caller{token, fmt.Sprintf("caller %d", len(l.callers)+1)}
	l.callers = append(l.callers, c)
	slices.SortFunc(l.callers, func(a, b caller) int { return len(b.token) - len(a.token) })
	return c.name
}

// Place notes where something stands. A place that is noted again is the same one.
func (l *Log) Place(p Place) {
	l.note(func(r *Recording) {
		if !slices.ContainsFunc(r.Places, func(known Place) bool { return known.Address == p.Address }) {
			r.Places = append(r.Places, p)
		}
	})
}

// Message notes a message whose answer has come, or will not.
func (l *Log) Message(m Message) {
	if l == nil {
		return
	}
	l.note(func(r *Recording) {
		if r.full() {
			r.Dropped++
			return
		}
		for _, text := range []*string{&m.Path, &m.Key, &m.Body, &m.Said, &m.Err} {
			*text = l.beginning(*text)
		}
		r.Messages = append(r.Messages, m)
	})
}

// Mark notes that something happened at a place, now.
func (l *Log) Mark(place string, event Event, text string) {
	at := time.Now()
	l.note(func(r *Recording) {
		if r.full() {
			r.Dropped++
			return
		}
		r.Marks = append(r.Marks, Mark{At: at, Place: place, Event: event, Text: text})
	})
}

// Part notes that a part of the scenario begins.
func (l *Log) Part(name string) {
	at := time.Now()
	l.note(func(r *Recording) { r.Parts = append(r.Parts, Part{At: at, Name: name}) })
}

// World notes what a simulator has told.
func (l *Log) World(w World) {
	l.note(func(r *Recording) { r.Worlds = append(r.Worlds, w) })
}

// Database notes what was found in a database.
func (l *Log) Database(d Database) {
	l.note(func(r *Recording) {
		for _, table := range d.Tables {
			for _, row := range table.Rows {
				for i, value := range row {
					if text, ok := value.(string); ok {
						row[i] = l.beginning(text)
					}
				}
			}
		}
		r.Databases = append(r.Databases, d)
	})
}

// Close ends the recording: what comes later, as the laboratory is cleared, does not belong to the scenario.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// Read is what was recorded so far.
func (l *Log) Read() Recording {
	if l == nil {
		return Recording{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.kept
	r.Places, r.Messages, r.Marks = slices.Clone(r.Places), slices.Clone(r.Messages), slices.Clone(r.Marks)
	r.Parts, r.Worlds, r.Databases = slices.Clone(r.Parts), slices.Clone(r.Worlds), slices.Clone(r.Databases)
	return r
}

func (l *Log) note(into func(r *Recording)) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		into(&l.kept)
	}
}

func (r *Recording) full() bool { return len(r.Messages)+len(r.Marks) >= most }

// beginning is the beginning of a text, with callers' names in place of their tokens. The caller holds mu.
func (l *Log) beginning(text string) string {
	text = text[:min(len(text), 10*textMost)] // a token must not be cut before it is found
	for _, c := range l.callers {
		text = strings.ReplaceAll(text, c.token, c.name)
	}
	if len(text) <= textMost {
		return text
	}
	end := textMost
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
