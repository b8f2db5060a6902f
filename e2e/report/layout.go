package report

import (
	"fmt"
	"time"

	"github.com/einmal/einmal/e2e/record"
)

// Measures of a diagram, in pixels.
const (
	gutter     = 84 // for times, at the left
	margin     = 8  // at the right
	headHeight = 42
	headGap    = 10 // between a head and the first row, or the last
	rowHeight  = 34
	pillHeight = 22
	arrowHead  = 7
)

// drawing is a diagram with every coordinate known.
type drawing struct {
	Label         string // for who cannot see it
	Width, Height float64
	Heads         []head
	Lifelines     []lifeline
	Arrows        []arrow
	Pills         []pill
	Gaps          []gap
	Times         []text
}

// head names a participant, above its lifeline and below it.
type head struct {
	X, Y, W, H float64
	Name, Sub  text
	Kind       record.Kind
}

type lifeline struct {
	X, Y1, Y2 float64
	State     state
}

// arrow is a message, or one that got lost: such a one ends half-way, in a cross.
type arrow struct {
	X1, X2, Y    float64
	Tip          string // path of its head, or of the cross
	Label        text
	From, To     string // names of its ends
	Title        string
	Tone         tone
	Answer, Lost bool
	Times        int
}

// pill is a mark, beside a dot on the lifeline.
type pill struct {
	X, Y, W, H float64
	DotX, DotY float64
	Label      text
	At         string // name of its place
	Title      string
	Tone       tone
	Times      int
}

type gap struct {
	X1, X2, Y float64
	Label     text
}

type text struct {
	X, Y  float64
	Label string
}

// draw lays steps out one below the other. Times are told since began.
func draw(label string, steps []step, lives lives, began time.Time) drawing {
	c := columnsFor(steps, lives)
	d := drawing{Label: label, Width: c.width}
	rows := d.addSteps(c, steps)
	bottom := rows[len(rows)-1] + rowHeight/2 + headGap
	for i, id := range c.ids {
		d.addLifeline(c.x[i], id, steps, rows, lives, bottom)
		d.Heads = append(d.Heads, c.headAt(i, 2), c.headAt(i, bottom))
	}
	d.Height = bottom + headHeight + 2
	shown := ""
	for i, s := range steps {
		if at := fmt.Sprintf("+%.3f s", s.at.Sub(began).Seconds()); at != shown && (i == 0 || rows[i] != rows[i-1]) {
			d.Times = append(d.Times, text{gutter - 30, rows[i] + 4, at})
			shown = at
		}
	}
	return d
}

// addSteps draws the steps and returns the height of each. Processes that come or go at about the same time share a row.
func (d *drawing) addSteps(c columns, steps []step) (rows []float64) {
	y := float64(headHeight + headGap - rowHeight/2)
	var shared []pill // on the row so far; nil unless it may be shared
	for _, s := range steps {
		p := c.pillFor(s, y)
		if !s.dull || shared == nil || overlapsAny(p, shared) {
			y += rowHeight
			shared = nil
		}
		switch {
		case s.omitted > 0:
			d.Gaps = append(d.Gaps, gap{gutter, c.width - margin, y, text{(gutter + c.width) / 2, y + 4, s.label}})
		case s.isMark():
			p = c.pillFor(s, y)
			d.Pills = append(d.Pills, p)
			if s.dull {
				shared = append(shared, p)
			}
		default:
			d.Arrows = append(d.Arrows, c.arrowFor(s, y))
		}
		rows = append(rows, y)
	}
	return rows
}

func overlapsAny(p pill, others []pill) bool {
	const apart = 12
	for _, o := range others {
		left, right := min(p.X, p.DotX), max(p.X+p.W, p.DotX)
		if left < max(o.X+o.W, o.DotX)+apart && min(o.X, o.DotX) < right+apart {
			return true
		}
	}
	return false
}

// addLifeline draws whether a participant is there, from one change to the next. What is no process is always there.
func (d *drawing) addLifeline(x float64, id string, steps []step, rows []float64, lives lives, bottom float64) {
	is := func(at time.Time) state {
		if lives.places[id].Kind != record.Process {
			return passive
		}
		return lives.at(id, at)
	}
	from, now := float64(headHeight+2), is(steps[0].at.Add(-1))
	for i, s := range steps {
		if then := is(s.at); then != now {
			d.Lifelines = append(d.Lifelines, lifeline{x, from, rows[i], now})
			from, now = rows[i], then
		}
	}
	d.Lifelines = append(d.Lifelines, lifeline{x, from, bottom, now})
}
