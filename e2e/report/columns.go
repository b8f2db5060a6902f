package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/einmal/einmal/e2e/record"
)

const (
	// charWidth is the width of a character of a label: 12 pixels high in a monospaced face, so that no face has to be asked. Those in use have 0.55
	// to 0.602 em.
	charWidth = 7.25

	columnGap = 150  // between two lifelines, at least
	wideGap   = 250  // and at most, where there is room
	roomy     = 1150 // what a diagram may take on a page of 1280 without being scrolled
	labelPad  = 30   // beside a label on its arrow, for the arrow's head
	headPad   = 26   // beside a participant's name
)

// columns are the participants of a diagram, from left to right, and where their lifelines are.
type columns struct {
	ids   []string
	names map[string][2]string // name and what it is
	kinds map[string]record.Kind
	x     []float64
	width float64
}

// columnsFor finds the participants of the steps, and room for every label.
func columnsFor(steps []step, lives lives) columns {
	c := columns{names: map[string][2]string{}, kinds: map[string]record.Kind{}}
	for _, s := range steps {
		for _, id := range []string{s.from, s.to} {
			if id != "" && !slices.Contains(c.ids, id) {
				c.ids = append(c.ids, id)
			}
		}
	}
	slices.SortStableFunc(c.ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(lives.rank(a), lives.rank(b)), cmp.Compare(slices.Index(lives.order, a), slices.Index(lives.order, b)))
	})
	c.nameAll(lives)
	gaps := make([]float64, len(c.ids))
	for i := 1; i < len(gaps); i++ {
		gaps[i] = max(columnGap, (c.headWidth(i-1)+c.headWidth(i))/2+headPad)
	}
	for _, s := range steps {
		c.widen(gaps, s)
	}
	c.relax(gaps)
	x := gutter + c.headWidth(0)/2
	for i, gap := range gaps {
		if i > 0 {
			x += gap
		}
		c.x = append(c.x, x)
	}
	c.width = x + c.headWidth(len(c.ids)-1)/2 + margin
	for _, s := range steps {
		if w := pillWidth(s); s.isMark() && w > c.x[c.index(s.from)]-gutter { // it fits at neither side, or at the right
			c.width = max(c.width, c.x[c.index(s.from)]+pillHeight+w+margin)
		}
		if s.omitted > 0 {
			c.width = max(c.width, gutter+widthOf(s.label)+margin)
		}
	}
	return c
}

// rank orders participants as a message meets them: callers, what stands before services, services, what stands behind them, the world.
func (l lives) rank(id string) int {
	p, known := l.places[id]
	switch {
	case id == somebody:
		return 3
	case !known, id == record.Agent:
		return 0
	case l.isWorld(id):
		return 6
	case p.Kind == record.Process:
		return 2
	case p.Kind == record.Store:
		return 4
	case slices.ContainsFunc(p.Before, l.isWorld):
		return 5
	case p.Name == "PostgreSQL proxy":
		return 4
	}
	return 1
}

// nameAll gives each participant a name, with a number where there are several of a kind.
func (c *columns) nameAll(lives lives) {
	count, nth := map[string]int{}, map[string]int{}
	for _, id := range c.ids {
		name, _ := lives.name(id)
		count[name]++
	}
	for _, id := range c.ids {
		name, sub := lives.name(id)
		nth[name]++
		if count[name] > 1 {
			name = fmt.Sprintf("%s %d", name, nth[name])
		}
		c.names[id] = [2]string{name, sub}
		c.kinds[id] = lives.places[id].Kind
	}
}

// name is what a participant is called, and what it is.
func (l lives) name(id string) (name, sub string) {
	p, known := l.places[id]
	switch {
	case id == somebody:
		return somebody, "not recorded which"
	case !known && l.callers == 1 && strings.HasPrefix(id, "caller "):
		return "caller", "client"
	case !known:
		return id, "client"
	case l.isWorld(id):
		return cmp.Or(l.targets[id], p.Name), "the world outside"
	case p.Kind == record.Process:
		return p.Name, "process"
	case p.Kind == record.Proxy:
		return p.Name, "fault"
	}
	return p.Name, "store"
}

func (c *columns) index(id string) int { return slices.Index(c.ids, id) }

func (c *columns) headWidth(i int) float64 {
	const bolder = 1.1 // names are larger than labels
	names := c.names[c.ids[i]]
	return max(widthOf(names[0])*bolder, widthOf(names[1])) + headPad
}

// widen makes room for the label of an arrow between its two lifelines.
func (c *columns) widen(gaps []float64, s step) {
	if s.isMark() || s.omitted > 0 {
		return
	}
	from, to := c.index(s.from), c.index(s.to)
	left, right := min(from, to), max(from, to)
	room := 0.0
	for i := left + 1; i <= right; i++ {
		room += gaps[i]
	}
	if missing := widthOf(labelOf(s)) + labelPad - room; missing > 0 && left < right {
		for i := left + 1; i <= right; i++ {
			gaps[i] += missing / float64(right-left)
		}
	}
}

// relax spreads lifelines that would stand close together on a page that has room.
func (c *columns) relax(gaps []float64) {
	room := roomy - gutter - c.headWidth(0)/2 - c.headWidth(len(c.ids)-1)/2 - margin
	for i := range gaps {
		room -= gaps[i]
	}
	for i := 1; i < len(gaps) && room > 0; i++ {
		more := min(max(0, wideGap-gaps[i]), room/float64(len(gaps)-i))
		gaps[i] += more
		room -= more
	}
}

func (c *columns) headAt(i int, y float64) head {
	id := c.ids[i]
	w := c.headWidth(i)
	return head{
		X: c.x[i] - w/2, Y: y, W: w, H: headHeight, Kind: c.kinds[id],
		Name: text{c.x[i], y + 18, c.names[id][0]}, Sub: text{c.x[i], y + 33, c.names[id][1]},
	}
}

// arrowFor draws a message. A lost request ends on its way there, a lost answer on its way back.
func (c *columns) arrowFor(s step, y float64) arrow {
	const reach = 5 // from the middle of a lifeline to its edge
	const lostAt = 0.72
	x1, x2 := c.x[c.index(s.from)], c.x[c.index(s.to)]
	way := 1.0
	if x2 < x1 {
		way = -1
	}
	a := arrow{
		X1: x1 + way*reach, X2: x2 - way*reach, Y: y + 8, Title: titleOf(s), Tone: s.tone, Answer: s.answer, Lost: s.lost,
		From: c.names[s.from][0], To: c.names[s.to][0], Times: s.times,
		Label: text{(x1 + x2) / 2, y, labelOf(s)},
	}
	if s.lost {
		a.X2 = x1 + (x2-x1)*lostAt
		const r = 4 // of the cross
		a.Tip = fmt.Sprintf("M%.1f %.1fl%d %dM%.1f %.1fl%d %d", a.X2-r, a.Y-r, 2*r, 2*r, a.X2-r, a.Y+r, 2*r, -2*r)
		return a
	}
	a.Tip = fmt.Sprintf("M%.1f %.1fl%.1f %.1fl%.1f %.1fz", a.X2, a.Y, -way*arrowHead, -arrowHead*0.55, 0.0, arrowHead*1.1)
	return a
}

// pillFor draws a mark at the right of its lifeline, or where there is no room at the left.
func (c *columns) pillFor(s step, y float64) pill {
	if !s.isMark() {
		return pill{}
	}
	x, w := c.x[c.index(s.from)], pillWidth(s)
	p := pill{X: x + pillHeight/2, Y: y - pillHeight/2, W: w, H: pillHeight, DotX: x, DotY: y, Title: titleOf(s), Tone: s.tone, At: c.names[s.from][0], Times: s.times}
	if p.X+w > c.width-margin {
		p.X = x - pillHeight/2 - w
	}
	p.Label = text{p.X + w/2, y + 4, labelOf(s)}
	return p
}

func pillWidth(s step) float64 { return widthOf(labelOf(s)) + pillHeight }

func widthOf(label string) float64 { return charWidth * float64(utf8.RuneCountInString(label)) }

// labelOf is a step's label with what it is about, and how often it came.
func labelOf(s step) string {
	label := s.label
	switch {
	case s.answer:
	case len(s.details) == 1:
		label += " · " + s.details[0]
	case len(s.details) > 1 && !s.isMark():
		label += fmt.Sprintf(" · %d keys", len(s.details))
		if len(s.details) == s.times {
			return label
		}
	}
	if s.times > 1 {
		label += fmt.Sprintf(" ×%d", s.times)
	}
	return label
}

// titleOf is what is shown of a step when it is pointed at.
func titleOf(s step) string { return strings.TrimSpace(labelOf(s) + "\n" + s.title) }
