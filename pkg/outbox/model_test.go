package outbox

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// rules are those of docs/protocol.md whose absence a model can show. Switched off, a rule is broken by a wrong variant of the one
// step that keeps it; everything else is the code as it runs.
type rules struct {
	MarkFirst        bool // a take is committed before the first byte is sent
	NegativeFenced   bool // negatives settle only under the fence they were learned with
	PositiveUnfenced bool // "it happened" settles under any fence
	VerdictUnfenced  bool // so does a verdict that the target keeps under our effect key
	NotFoundNoFail   bool // "not found" fails nothing whose send may still arrive
	DoubtNoCancel    bool // queued is canceled only while no send is in doubt
	DoubtNoRefusal   bool // the refusal of one send ends nothing while an earlier send is in doubt
	SendOnce         bool // without keys or a way to close, one send
	ReconcileFenced  bool // who asks takes a new fence first
	RaiseFirst       bool // who can close closes before asking
	FinalStays       bool // a final state never changes
	HintOnly         bool // a negative webhook makes somebody look, nothing more
	SendWindow       bool // nothing is sent again after the key window
	WindowFromFirst  bool // which begins with the first send, and never again
	KeyFromKey       bool // the effect key follows from the caller's, not from the operation
	DeadlineInTake   bool // nothing is taken to be sent after its deadline
	DeadlineNoticed  bool // what is open past it ends, or a person is asked
	EndInReview      bool // sends exhausted: failed without doubt, a person with it
	ApprovalInTake   bool // nothing is taken to be sent without a yes that holds
	WorldInTake      bool // nor into another world than that which was agreed to
	ApprovalEnds     bool // what is queued without one is withdrawn, or asked about if it is in doubt
}

var allRules = func() (r rules) {
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		v.Field(i).SetBool(true)
	}
	return r
}()

func without(names ...string) rules {
	r := allRules
	for _, name := range names {
		reflect.ValueOf(&r).Elem().FieldByName(name).SetBool(false)
	}
	return r
}

func TestTheProtocolHolds(t *testing.T) {
	t.Parallel()
	// Where the states are too many, nobody dies: what a kill does is in the other cases.
	allAlive, forgetfulAlive := fair, forgetful
	allAlive.nobodyDies, forgetfulAlive.nobodyDies = true, true
	db, known := modelDB(t), answers{}
	for _, c := range []struct {
		name    string
		ability Ability
		assume  assumptions
		only    string
	}{
		{"key", keyed, fair, ""}, // without bounds, a sender paused beyond the key window makes a second effect: impossible to prevent
		{"key without look-up", keyedOnly, fair, ""},
		{"key and close", keyedShut, allAlive, ""},
		{"key and floor", keyedHigh, allAlive, ""},
		{"floor, with delays and pauses without bound", floored, unbounded, ""},
		{"close, with delays and pauses without bound", shutting, unbounded, ""},
		{"look-up, with delays and pauses without bound", lookedUp, unbounded, ""},
		{"no ability, with delays and pauses without bound", unable, unbounded, ""},
		{"key, with a deadline", keyedOnly, dated(allAlive), ""},
		{"close, with a deadline", shutting, dated(allAlive), ""},
		{"floor, with a deadline", floored, dated(allAlive), ""},
		{"look-up, with a deadline", lookedUp, dated(unbounded), ""},
		{"no ability, with a deadline", unable, dated(unbounded), ""},
		{"key, with an approval", keyedOnly, agreed(allAlive), ""},
		{"close, with an approval", shutting, agreed(allAlive), ""},
		{"floor, with an approval", floored, agreed(allAlive), ""},
		{"look-up, with an approval", lookedUp, agreed(unbounded), ""},
		{"no ability, with an approval and a deadline", unable, agreed(dated(unbounded)), ""},
		{"key, with a failover that forgets the claim: one effect, though answers may contradict", keyedOnly, forgetfulAlive, "two effects"},
	} {
		t.Run("for "+c.name, func(t *testing.T) {
			m := newProtocol(t, known, c.ability, allRules, c.assume)
			m.only = c.only
			r := m.explore(db)
			t.Logf("%d states, %d steps, %d statements", r.states, r.steps, m.rows.asked)
			if r.violation != "" {
				t.Errorf("%s\n%q", r.violation, r.trace)
			}
		})
	}
}

// dated adds that the effect has a deadline, which may pass at any time.
func dated(a assumptions) assumptions {
	a.deadline = true
	return a
}

// agreed adds that a person must agree to the effect, whose yes holds for a time, and for the world that they were shown.
func agreed(a assumptions) assumptions {
	a.approval = true
	return a
}

// One row a rule: without it something goes wrong, and this. AskAfterGrace has none: nothing is sent again because time has
// passed, so nothing rests on it.
func TestEveryRuleIsNeeded(t *testing.T) {
	t.Parallel()
	const (
		falseFailed, falseCanceled = "failed, and it happened", "canceled, and it happened"
		twoEffects, twoAnswers     = "two effects", "contradictory final answers"
	)
	type line struct {
		without []string
		at      string
		ability Ability
		assume  assumptions
		want    string // how the violation begins; empty: none
	}
	table := []line{
		{[]string{"MarkFirst"}, "look-up", lookedUp, unbounded, falseCanceled},
		{[]string{"NegativeFenced"}, "floor", floored, unbounded, falseFailed},
		{[]string{"PositiveUnfenced"}, "none", unable, unbounded, "evidence thrown away"},
		{[]string{"NotFoundNoFail"}, "look-up", lookedUp, unbounded, falseFailed},
		{[]string{"DoubtNoCancel"}, "key", keyedOnly, fair, falseCanceled},
		{[]string{"DoubtNoRefusal"}, "key", keyedOnly, fair, falseFailed},
		{[]string{"SendOnce"}, "look-up", lookedUp, unbounded, twoEffects},
		{[]string{"SendOnce"}, "none", unable, unbounded, twoEffects},
		{[]string{"ReconcileFenced"}, "floor", floored, unbounded, falseCanceled},
		{[]string{"RaiseFirst"}, "floor", floored, unbounded, falseCanceled},
		{[]string{"RaiseFirst"}, "close", shutting, unbounded, falseFailed},
		{[]string{"HintOnly"}, "none", unable, unbounded, falseFailed},
		{[]string{"SendWindow"}, "key", keyedOnly, fair, twoEffects},
		{[]string{"WindowFromFirst"}, "key", keyedOnly, fair, twoEffects},
		{[]string{"KeyFromKey"}, "key", keyedOnly, forgetful, twoEffects},
		{[]string{"DeadlineInTake"}, "look-up", lookedUp, dated(unbounded), "sent after its deadline"},
		{[]string{"DeadlineInTake"}, "key", keyedOnly, dated(fair), "sent after its deadline"},
		{[]string{"EndInReview"}, "floor", floored, unbounded, "stuck"},
		{[]string{"ApprovalInTake"}, "key", keyedOnly, agreed(fair), "sent without an approval"},
		{[]string{"ApprovalInTake"}, "floor", floored, agreed(unbounded), "sent without an approval"},
		{[]string{"WorldInTake"}, "look-up", lookedUp, agreed(unbounded), "sent without an approval"},

		// Evidence against a final state can't be had while nothing false becomes final; then it must change nothing.
		{[]string{"FinalStays"}, "key", keyedOnly, fair, ""},
		{[]string{"FinalStays", "NotFoundNoFail"}, "key", keyedOnly, fair, twoAnswers},
		// A permission: without it more is left to a person.
		{[]string{"VerdictUnfenced"}, "key", keyedOnly, fair, ""},
		// For those who wait: without it what is late is found when it is due.
		{[]string{"DeadlineNoticed"}, "look-up", lookedUp, dated(unbounded), ""},
		// So is this: without it what nobody agrees to any more ends with its time.
		{[]string{"ApprovalEnds"}, "none", unable, agreed(unbounded), ""},
	}
	db, known := modelDB(t), answers{}
	for _, c := range table {
		t.Run(fmt.Sprintf("without %s, at %s: %s", strings.Join(c.without, " and "), c.at, cmp.Or(c.want, "holds")), func(t *testing.T) {
			m := newProtocol(t, known, c.ability, without(c.without...), c.assume)
			if c.want == twoEffects || c.want == twoAnswers {
				m.only = c.want // what else goes wrong without the rule may come first
			}
			if slices.Contains(c.without, "WindowFromFirst") {
				m.target.MaxAttempts = 3 // the send that comes too late is the one after the one that began the window anew
			}
			r := m.explore(db)
			t.Logf("%d states, %d statements: %q", r.states, m.rows.asked, r.trace)
			if !strings.HasPrefix(r.violation, c.want) || (r.violation == "") != (c.want == "") {
				t.Errorf("got %q", r.violation)
			}
		})
	}
	for i := range reflect.TypeFor[rules]().NumField() {
		name := reflect.TypeFor[rules]().Field(i).Name
		if !slices.ContainsFunc(table, func(l line) bool { return slices.Contains(l.without, name) }) {
			t.Errorf("no row for %s", name)
		}
	}
}
