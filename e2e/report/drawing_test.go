package report_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/einmal/einmal/e2e/record"
	"github.com/einmal/einmal/e2e/report"
)

func TestSequenceOfASmallRecording(t *testing.T) {
	chapters := report.Tell(scenario(small())).Chapters
	if len(chapters) != 1 {
		t.Fatalf("%d diagrams", len(chapters))
	}
	var got []string
	for _, a := range chapters[0].Drawing.Arrows {
		way := "→"
		if a.Lost {
			way = "✗"
		}
		got = append(got, fmt.Sprintf("%s %s %s: %s", a.From, way, a.To, a.Label.Label))
	}
	want := []string{
		"caller → HTTP proxy: POST /v1/tickets · key-1",
		"HTTP proxy ✗ tickets: request lost",
		"HTTP proxy ✗ caller: no answer",
		"caller → HTTP proxy: POST /v1/tickets · key-1",
		"HTTP proxy → tickets: POST /v1/tickets · key-1",
		"tickets → HTTP proxy: 201 executed",
		"HTTP proxy ✗ caller: answer lost",
		"caller → HTTP proxy: POST /v1/tickets · key-1",
		"HTTP proxy → tickets: POST /v1/tickets · key-1",
		"tickets → HTTP proxy: 201 replayed",
		"HTTP proxy → caller: 201 replayed",
		"tickets → desk: send · d26a87c8…",
		"desk ✗ tickets: nobody hears the answer",
		"caller → tickets: GET /v1/operations/op_…193d6b ×3",
		"tickets → caller: 200 running ×3",
		"tickets → desk: lookup · d26a87c8…",
		"desk → tickets: confirmed",
		"caller → tickets: GET /v1/operations/op_…193d6b",
		"tickets → caller: 200 succeeded",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	var marks []string
	for _, p := range chapters[0].Drawing.Pills {
		marks = append(marks, p.At+": "+p.Label.Label)
	}
	wantMarks := []string{
		"desk: ready", "tickets: ready", "desk: armed: hang after send", "desk: effect: ticket · desk_…d6e077", "tickets: killed (SIGKILL)", "tickets: ready", "tickets: left",
	}
	if !slices.Equal(marks, wantMarks) {
		t.Errorf("marks are %q, want %q", marks, wantMarks)
	}
}

func TestALostArrowIsDrawnAsLost(t *testing.T) {
	d := report.Tell(scenario(small())).Chapters[0].Drawing
	middle := map[string]float64{}
	for _, h := range d.Heads {
		middle[h.Name.Label] = h.X + h.W/2
	}
	lost := 0
	for _, a := range d.Arrows {
		way, whole := a.X2-a.X1, middle[a.To]-middle[a.From]
		if reached := way / whole; a.Lost && (reached < 0.5 || reached > 0.8) || !a.Lost && reached < 0.85 {
			t.Errorf("%s → %s (%s) gets %.0f %% of its way, lost %v", a.From, a.To, a.Label.Label, 100*reached, a.Lost)
		}
		if strings.Count(a.Tip, "M") != map[bool]int{true: 2, false: 1}[a.Lost] { // a cross has two strokes, a head has one
			t.Errorf("%s → %s (%s) ends in %s", a.From, a.To, a.Label.Label, a.Tip)
		}
		if a.Lost {
			lost++
		}
	}
	page := string(written(t, run(scenario(small()))))
	if got := strings.Count(page, ` lost"><title>`); got != lost || lost != 4 {
		t.Errorf("%d arrows have the look of a lost one, %d are, want 4", got, lost)
	}
}

func TestNothingDisappearsUnsaid(t *testing.T) {
	for name, r := range map[string]record.Recording{
		"small": small(), "a long poll": polls(400, 0), "losses in it": polls(400, 9), "only losses": polls(400, 1), "chance": anything(3),
	} {
		told, drawn, left := report.Steps(r)
		if told != drawn+left || told == 0 {
			t.Errorf("%s: %d steps, %d in the diagram and %d said to be left out", name, told, drawn, left)
		}
		section := report.Tell(scenario(r))
		rows := len(section.Chapters[0].Drawing.Arrows) + len(section.Chapters[0].Drawing.Pills) + len(section.Chapters[0].Drawing.Gaps)
		if rows > 120 {
			t.Errorf("%s: %d rows are too long to read", name, rows)
		}
	}
	if _, drawn, left := report.Steps(polls(400, 0)); left != 0 || drawn != 800 {
		t.Errorf("400 equal polls: %d drawn, %d left out, want all of them folded", drawn, left)
	}
	if _, _, left := report.Steps(polls(400, 9)); left == 0 {
		t.Error("nothing is left out of hundreds of messages that differ")
	}
}

// box is where a text is.
type box struct {
	left, top, right, bottom float64
	label                    string
}

func around(x, y, charWidth float64, label string) box {
	const ascent, descent = 10, 3 // of 12 px
	half := charWidth * float64(utf8.RuneCountInString(label)) / 2
	return box{x - half, y - ascent, x + half, y + descent, label}
}

// Any recording: no label lies on another, none outside the picture.
func TestLabelsDoNotOverlap(t *testing.T) {
	recordings := []record.Recording{small(), polls(300, 9)}
	for seed := range uint64(200) {
		recordings = append(recordings, anything(seed))
	}
	for i, r := range recordings {
		for _, chapter := range report.Tell(scenario(r)).Chapters {
			const wide = 7.22 // of a monospaced face at 12 px
			d := chapter.Drawing
			var boxes []box
			for _, a := range d.Arrows {
				b := around(a.Label.X, a.Label.Y, wide, a.Label.Label)
				if left, right := min(a.X1, a.X2), max(a.X1, a.X2); !a.Lost && (b.left < left || b.right > right) {
					t.Errorf("recording %d: %q is wider than its arrow", i, b.label)
				}
				boxes = append(boxes, b)
			}
			for _, p := range d.Pills {
				boxes = append(boxes, box{p.X, p.Y, p.X + p.W, p.Y + p.H, p.Label.Label})
			}
			for _, g := range d.Gaps {
				boxes = append(boxes, around(g.Label.X, g.Label.Y, wide, g.Label.Label))
			}
			for _, h := range d.Heads {
				boxes = append(boxes, box{h.X, h.Y, h.X + h.W, h.Y + h.H, h.Name.Label})
			}
			for _, at := range d.Times { // at their ends
				width := 6.4 * float64(len(at.Label))
				boxes = append(boxes, box{at.X - width, at.Y - 8, at.X, at.Y + 2, at.Label})
			}
			for k, a := range boxes {
				if a.left < 0 || a.right > d.Width || a.top < 0 || a.bottom > d.Height {
					t.Errorf("recording %d: %q is outside of %g × %g: %+v", i, a.label, d.Width, d.Height, a)
				}
				for _, b := range boxes[:k] {
					if a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom {
						t.Errorf("recording %d: %q lies on %q", i, a.label, b.label)
					}
				}
			}
			if t.Failed() {
				return
			}
		}
	}
}

// anything is a recording by chance: many places, marks and messages with labels of all lengths.
func anything(seed uint64) record.Recording {
	chance := rand.New(rand.NewPCG(seed, 1))
	r := small()
	addresses := []string{proxy, tickets, desk}
	for i := range chance.IntN(5) {
		address := fmt.Sprint("127.0.0.1:", 2000+i)
		addresses = append(addresses, address)
		kind := []record.Kind{record.Process, record.Proxy, record.Store}[chance.IntN(3)]
		r.Places = append(r.Places, record.Place{Address: address, Kind: kind, Name: strings.Repeat("n", 1+chance.IntN(20)), Before: []string{tickets}})
	}
	any := func(from []string) string { return from[chance.IntN(len(from))] }
	events := []record.Event{record.Started, record.Ready, record.Killed, record.Frozen, record.Thawed, record.Ended, record.Struck, record.Healed}
	for range chance.IntN(80) {
		r.Marks = append(r.Marks, record.Mark{
			At: at(chance.Float64() * 200), Place: any(addresses), Event: events[chance.IntN(len(events))], Text: strings.Repeat("m", 1+chance.IntN(40)),
		})
	}
	for i := range chance.IntN(120) {
		sent := chance.Float64() * 200
		m := record.Message{
			From: any([]string{"caller 1", "caller 2", "laboratory", proxy}), To: any(addresses), Method: "POST",
			Path: "/" + strings.Repeat("p", chance.IntN(90)), Key: strings.Repeat("k", chance.IntN(90)) + fmt.Sprint(i%7),
			Sent: at(sent), Ended: at(sent + chance.Float64()*9), Status: []int{0, 200, 201, 409, 503}[chance.IntN(5)],
		}
		if m.From != m.To {
			r.Messages = append(r.Messages, m)
		}
	}
	return r
}
