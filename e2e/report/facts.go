package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/einmal/einmal/e2e/record"
)

// rowsShown is how many rows of a table are in the report: it is there to be read.
const rowsShown = 12

// Injection is what was done to a place, and how often.
type Injection struct {
	Where, What string
	Times       int
}

// injections are what the scenario broke, the first first.
func (s *story) injections() (all []Injection) {
	add := func(where, what string, times int) {
		i := slices.IndexFunc(all, func(known Injection) bool { return known.Where == where && known.What == what })
		if i < 0 {
			i = len(all)
			all = append(all, Injection{Where: where, What: what})
		}
		all[i].Times += times
	}
	for _, one := range s.steps {
		where, _ := s.lives.name(one.from)
		switch {
		case one.isMark() && one.tone == broken, one.isMark() && strings.HasPrefix(one.label, "armed: "):
			add(where, nth.ReplaceAllString(one.label, ""), 1)
		case one.lost && s.lives.places[one.from].Kind == record.Proxy && (one.label == string(record.RequestLost) || one.label == string(record.AnswerLost)):
			add(where, one.label, 1)
		case one.answer && one.lost && one.label == hungUp:
			where, _ = s.lives.name(one.to)
			add(where, one.label, 1)
		}
	}
	struck := map[string]int{}
	for _, c := range s.calls {
		if c.Faulted {
			struck[c.Target]++
		}
	}
	for _, target := range slices.Sorted(maps.Keys(struck)) {
		add(target, "calls that the armed faults struck", struck[target])
	}
	return all
}

// Ledger is what a simulator says of calls and effects, by effect key.
type Ledger struct {
	World   string
	Err     string
	Calls   int
	Effects int
	Keys    []LedgerKey
	More    int // keys that are not shown: one effect each
}

// LedgerKey is what happened under one effect key.
type LedgerKey struct {
	Key, Full  string
	Calls      string // "send ×2, lookup"
	Struck     int
	Effects    int
	References []string
}

// ledgers are what the simulators say, and the most effects that one of them has under one key.
func (s *story) ledgers() (all []Ledger, most int) {
	for _, w := range s.Worlds {
		name, _ := s.lives.name(w.Address)
		l := Ledger{World: name, Err: w.Err, Calls: len(w.Calls), Effects: len(w.Ledger)}
		l.Keys = keysOf(w)
		for _, k := range l.Keys {
			most = max(most, k.Effects)
		}
		// What is not one call and one effect is what a reader looks for.
		slices.SortStableFunc(l.Keys, func(a, b LedgerKey) int { return cmp.Compare(b.oddness(), a.oddness()) })
		l.More = max(0, len(l.Keys)-rowsShown)
		l.Keys = l.Keys[:len(l.Keys)-l.More]
		all = append(all, l)
	}
	return all, most
}

func (k LedgerKey) oddness() int {
	switch {
	case k.Effects > 1:
		return 3
	case k.Effects == 0:
		return 2
	case k.Struck > 0 || k.Calls != "send":
		return 1
	}
	return 0
}

func keysOf(w record.World) []LedgerKey {
	var keys []LedgerKey
	index := map[string]int{}
	of := func(key string) *LedgerKey {
		i, known := index[key]
		if !known {
			i = len(keys)
			index[key] = i
			keys = append(keys, LedgerKey{Key: shorten(cmp.Or(key, "none")), Full: key})
		}
		return &keys[i]
	}
	calls := map[string]map[string]int{}
	for _, c := range w.Calls {
		k := of(c.EffectKey)
		if c.Faulted {
			k.Struck++
		}
		if calls[c.EffectKey] == nil {
			calls[c.EffectKey] = map[string]int{}
		}
		calls[c.EffectKey][c.Kind]++
	}
	for _, e := range w.Ledger {
		k := of(e.EffectKey)
		k.Effects++
		k.References = append(k.References, shorten(e.Reference))
	}
	for i := range keys {
		var parts []string
		of := calls[keys[i].Full]
		for _, kind := range slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(of[b]-of[a], strings.Compare(a, b)) }) {
			if of[kind] > 1 {
				kind = fmt.Sprintf("%s ×%d", kind, of[kind])
			}
			parts = append(parts, kind)
		}
		keys[i].Calls = strings.Join(parts, ", ")
	}
	return keys
}

// Table is some rows of a table.
type Table struct {
	Name    string
	Total   int
	Err     string
	Columns []string
	Rows    [][]Cell
	More    int // rows that are not shown
}

// Cell is one value. Full is there where Text is shorter.
type Cell struct{ Text, Full string }

// told are the columns of the tables that every service has, as they are shown. Of the others, all that say something are.
var told = map[string][]string{
	"operations": {"id", "type", "state", "idempotency_key", "principal", "response_status", "created_at", "completed_at"},
	"effects":    {"operation_id", "target", "effect_key", "state", "fence", "doubt", "attempts", "asks", "reference", "review_id"},
	"attempts":   {"operation_id", "kind", "fence", "started_at", "ended_at", "outcome", "error", "reference"},
	"reviews":    {"id", "kind", "operation_id", "state", "opened_at", "evidence"},
}

// order puts the tables of operations first, and then those of the domain.
var order = []string{"operations", "effects", "attempts", "reviews"}

func (s *story) tables() (all []Table) {
	for _, d := range s.Databases {
		if d.Err != "" {
			all = append(all, Table{Name: d.Name, Err: d.Err})
		}
		tables := slices.Clone(d.Tables)
		slices.SortStableFunc(tables, func(a, b record.Table) int { return rankOf(a.Name) - rankOf(b.Name) })
		for _, t := range tables {
			all = append(all, s.tableOf(t, d.Behind))
		}
	}
	return all
}

func rankOf(table string) int {
	if i := slices.Index(order, table); i >= 0 {
		return i
	}
	return len(order)
}

func (s *story) tableOf(t record.Table, behind time.Duration) Table {
	rows := t.Rows[:min(len(t.Rows), rowsShown)]
	table := Table{Name: t.Name, Total: t.Total, More: t.Total - len(rows)}
	var columns []int
	for _, name := range told[t.Name] {
		if i := slices.Index(t.Columns, name); i >= 0 {
			columns = append(columns, i)
		}
	}
	if told[t.Name] == nil {
		columns = tellingColumns(t, rows)
	}
	for _, i := range columns {
		table.Columns = append(table.Columns, strings.ReplaceAll(strings.TrimSuffix(t.Columns[i], "_at"), "_", " "))
	}
	for _, values := range rows {
		var cells []Cell
		for _, i := range columns {
			cells = append(cells, s.cellOf(values[i], behind))
		}
		table.Rows = append(table.Rows, cells)
	}
	return table
}

// tellingColumns are those in which not all values are missing, or empty, or zero.
func tellingColumns(t record.Table, rows [][]any) (columns []int) {
	const most = 9 // a table that can be read
	for i := range t.Columns {
		if len(columns) < most && slices.ContainsFunc(rows, func(row []any) bool {
			text := fmt.Sprint(row[i])
			return row[i] != nil && text != "" && text != "0" && text != "{}" && text != "false"
		}) {
			columns = append(columns, i)
		}
	}
	return columns
}

func (s *story) cellOf(value any, behind time.Duration) Cell {
	switch v := value.(type) {
	case nil:
		return Cell{Text: "–"}
	case time.Time:
		if len(s.steps) == 0 {
			return Cell{Text: v.UTC().Format(time.RFC3339Nano)}
		}
		at := row{"at": v}.time("at", behind)
		return Cell{Text: fmt.Sprintf("%+.3f s", at.Sub(s.steps[0].at).Seconds()), Full: v.UTC().Format(time.RFC3339Nano)}
	case string:
		return cellOfText(v)
	}
	return Cell{Text: fmt.Sprint(value)}
}

func cellOfText(text string) Cell {
	full := text
	var evidence []struct{ Source, Says string }
	if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &evidence) == nil && len(evidence) > 0 {
		last := evidence[len(evidence)-1]
		return Cell{Text: last.Source + ": " + last.Says, Full: full}
	}
	if text = shorten(text); text == full {
		full = ""
	}
	return Cell{Text: cmp.Or(text, "–"), Full: full}
}
