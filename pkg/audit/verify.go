package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"

	"golang.org/x/mod/sumdb/tlog"
)

// Kind is a way in which a log is not what was signed.
type Kind string

const (
	Changed           Kind = "changed row"        // an event, a leaf, or what the tree says of itself, is another than was sealed
	Removed           Kind = "removed row"        // an event that was sealed, or was to be, is gone
	Inserted          Kind = "inserted row"       // an event, a leaf or a marker that no service has written
	CutTail           Kind = "cut tail"           // the log ends before a checkpoint does
	Rewritten         Kind = "rewritten tree"     // the tree is consistent in itself, and no checkpoint is of it
	ForeignKey        Kind = "foreign key"        // a checkpoint is signed by nobody who is believed
	DeletedCheckpoint Kind = "deleted checkpoint" // a checkpoint is gone
	ChangedCheckpoint Kind = "changed checkpoint" // a checkpoint is not what was signed
)

// Finding is one kind of what is wrong, at the first event that it affects.
type Finding struct {
	Kind    Kind
	Index   int64  // of the leaf; unsealedIndex: the event is in no leaf
	EventID string // empty: nothing is left that tells it
	Detail  string
	More    int // how often the kind was found after that
}

// unsealedIndex comes after every leaf.
const unsealedIndex = 1 << 62

// Report is what became of a verification.
type Report struct {
	Leaves, Checkpoints, Pending int64
	Outside                      bool // it was held against a checkpoint outside, too
	Findings                     []Finding
}

// First is the finding that affects the first event; false: there is none, the log is what was signed.
func (r Report) First() (first Finding, found bool) {
	for _, f := range r.Findings {
		if !found || f.Index < first.Index {
			first, found = f, true
		}
	}
	return first, found
}

// Trust is what a log is held against, none of it from the log.
type Trust struct {
	Service string // whose log it is to be; empty: anybody's
	Keys    Keys
	Outside string // the last checkpoint outside the database, signed; empty: none
}

// errCut means that a file is not a whole exported log.
var errCut = errors.New("the log is cut: its last line is not there")

// errOrder means that a file is not one exported log from its beginning to its end.
var errOrder = errors.New("not one log as it was exported")

// Verify holds a log against what is believed. An error means that it could not be read.
func Verify(log iter.Seq2[Entry, error], trust Trust) (Report, error) {
	v := verifier{trust: trust, found: map[Kind]int{}, digest: digest("")}
	n, part, ended := 0, nowhere, false
	for e, err := range log {
		if err != nil {
			return Report{}, err
		}
		// A root that is told after the leaves would never be held against them.
		n++
		if !e.follows(part) {
			return Report{}, fmt.Errorf("%w: line %d does not belong there; there are, in this order, one log, checkpoints, leaves, what is in no leaf, and one end", errOrder, n)
		}
		part = e.part()
		switch {
		case e.Log != nil && !e.Log.isOf(trust.Service):
			return Report{}, fmt.Errorf("it is the log %s, which is none of %s", e.Log.Origin, trust.Service)
		case e.Log != nil:
			v.log = *e.Log
		case e.Checkpoint != nil:
			v.checkpoint(*e.Checkpoint)
		case e.Leaf != nil:
			v.leaf(*e.Leaf)
		case e.Loose != nil:
			v.loose(*e.Loose)
		case e.End != nil:
			ended = true
		}
	}
	if !ended {
		return Report{}, errCut
	}
	v.end()
	return v.Report, nil
}

type verifier struct {
	Report
	trust Trust
	log   LogEntry
	found map[Kind]int // where in Findings

	signed  []Checkpoint // those in the log whose signature is believed, by number
	number  int64        // of the last in the log, believed or not
	size    int64        // of the last that can be read
	digest  [sha256.Size]byte
	outside *Checkpoint
	begun   bool
	next    int // of signed, which is to be met next

	waits name // the last event that was in no leaf

	tree    frontier
	held    *LeafEntry // the last leaf, until it is known that no other has its index
	firstID string     // the event of leaf 0
	lastID  string     // the event of the last leaf
	since   int64      // the tree is as it was signed up to here
	sinceID string     // the event of that leaf
	broken  bool       // a leaf is missing: of what comes after it no root can be told
	strayed bool       // a root was another than was signed: so are all after it
}

func (v *verifier) add(kind Kind, index int64, eventID, detail string, args ...any) {
	if i, again := v.found[kind]; again {
		v.Findings[i].More++
		return
	}
	v.found[kind] = len(v.Findings)
	v.Findings = append(v.Findings, Finding{Kind: kind, Index: index, EventID: eventID, Detail: fmt.Sprintf(detail, args...)})
}

// checkpoint looks at a checkpoint by itself and beside the one before. What is wrong with it is told of the first event that it alone vouches
// for.
func (v *verifier) checkpoint(e CheckpointEntry) {
	v.Checkpoints++
	c, key, err := OpenCheckpoint(e.Note, v.trust.Keys)
	first := v.size
	switch {
	case errors.Is(err, ErrForeignKey):
		v.add(ForeignKey, first, "", "checkpoint %d is signed by %s, which is none of the keys that are believed", e.Number, key)
	case err != nil:
		v.add(ChangedCheckpoint, first, "", "checkpoint %d: %v", e.Number, err)
	case c.Origin != v.log.Origin || c.Number != e.Number || c.Size < v.size:
		v.add(ChangedCheckpoint, first, "", "in the place of checkpoint %d is number %d of %s", e.Number, c.Number, c.Origin)
	case e.Number != v.number+1:
		v.add(DeletedCheckpoint, first, "", "checkpoint %d is gone", v.number+1)
		v.signed, v.size = append(v.signed, c), c.Size
	case c.Previous != v.digest:
		v.add(ChangedCheckpoint, first, "", "the one before checkpoint %d is not the one that it was signed after", e.Number)
		v.signed, v.size = append(v.signed, c), c.Size
	default:
		v.signed, v.size = append(v.signed, c), c.Size
	}
	v.number, v.digest = e.Number, digest(e.Note)
}

// begin opens the checkpoint outside, between the checkpoints and the first leaf.
func (v *verifier) begin() {
	if v.begun {
		return
	}
	v.begun = true
	if v.trust.Outside == "" {
		return
	}
	v.Outside = true
	c, key, err := OpenCheckpoint(v.trust.Outside, v.trust.Keys)
	switch {
	case errors.Is(err, ErrForeignKey):
		v.add(ForeignKey, 0, "", "the checkpoint outside is signed by %s, which is none of the keys that are believed", key)
	case err != nil:
		v.add(ChangedCheckpoint, 0, "", "the checkpoint outside: %v", err)
	case c.Origin != v.log.Origin:
		v.add(Rewritten, 0, "", "the checkpoint outside is of the log %s, and this is %s", c.Origin, v.log.Origin)
	default:
		v.outside = &c
	}
}

// checkpointsMade is how many there must have been.
func (v *verifier) checkpointsMade() int64 {
	if v.outside != nil {
		return max(v.log.Checkpoints, v.outside.Number)
	}
	return v.log.Checkpoints
}

// leaf looks at a leaf when the next one is there: of two that have one index, one is not what was sealed.
func (v *verifier) leaf(l LeafEntry) {
	v.begin()
	v.Leaves++
	if v.held != nil && v.held.Index >= l.Index {
		if v.held.Index > l.Index || v.held.matches() {
			v.add(Inserted, l.Index, l.EventID, "leaf %d is there twice", l.Index)
			return
		}
		v.add(Inserted, l.Index, v.held.EventID, "leaf %d is there twice", l.Index)
		v.held = &l
		return
	}
	v.release()
	v.held = &l
}

// release puts the leaf that is held on the tree.
func (v *verifier) release() {
	if v.held == nil {
		return
	}
	l := *v.held
	v.held = nil
	for i, f := range v.Findings { // what was found before is told of this event
		if f.Index == l.Index && f.EventID == "" {
			v.Findings[i].EventID = l.EventID
		}
	}
	switch {
	case l.Index > v.tree.size && !v.broken:
		v.add(Removed, v.tree.size, "", "leaf %d is gone, with all that told of its event; %s", v.tree.size, after(v.lastID))
		v.broken = true
	case l.Index < v.tree.size && !v.broken:
		v.add(Changed, l.Index, l.EventID, "leaf %d is in the place of leaf %d", l.Index, v.tree.size)
	case v.vouchedFor() <= l.Index && v.number >= v.checkpointsMade():
		v.add(Inserted, l.Index, l.EventID, "leaf %d is after the last checkpoint, and none was signed for it", l.Index)
		v.tree.size, v.broken = l.Index+1, true
		return
	}
	v.lastID = l.EventID
	if l.Index == 0 {
		v.firstID = l.EventID
	}
	if l.Index == v.since {
		v.sinceID = l.EventID
	}
	v.event(l)
	if v.broken {
		v.tree.size = l.Index + 1 // go on looking at events
		return
	}
	v.grow(l)
	v.meet()
}

// vouchedFor is how many leaves a checkpoint was signed for, as far as they are there.
func (v *verifier) vouchedFor() int64 {
	if v.outside != nil {
		return max(v.size, v.outside.Size)
	}
	return v.size
}

// event holds an event against its leaf.
func (v *verifier) event(l LeafEntry) {
	switch {
	case l.Event == nil:
		v.add(Removed, l.Index, l.EventID, "the event of leaf %d is gone", l.Index)
	case !l.matches():
		v.add(Changed, l.Index, l.EventID, "the event of leaf %d is not the one that was sealed", l.Index)
	}
}

// matches reports whether a leaf is that of its event.
func (l LeafEntry) matches() bool {
	if l.Event == nil || l.Event.ID != l.EventID || l.Event.Account != l.Account {
		return false
	}
	hash := l.Event.leafHash()
	return bytes.HasPrefix(l.Hashes, hash[:])
}

// grow appends a leaf to the tree, and looks whether it completes what it says.
func (v *verifier) grow(l LeafEntry) {
	var stored tlog.Hash
	copy(stored[:], l.Hashes)
	var completed []byte
	for _, h := range v.tree.push(stored) {
		completed = append(completed, h[:]...)
	}
	if !bytes.Equal(completed, l.Hashes) {
		v.add(Changed, l.Index, l.EventID, "leaf %d completes other hashes than it says", l.Index)
	}
}

// meet compares the tree, as large as it is now, with what was signed of that size.
func (v *verifier) meet() {
	for ; v.next < len(v.signed) && v.signed[v.next].Size <= v.tree.size; v.next++ {
		c := v.signed[v.next]
		if c.Size < v.tree.size || v.strayed {
			continue
		}
		if c.Root != v.tree.root() {
			v.strayed = true
			v.add(Rewritten, v.since, v.sinceID, "checkpoint %d was signed for other events than these first %d; the first that differs is this one or one of the %d after it",
				c.Number, c.Size, c.Size-v.since-1)
			continue
		}
		v.since, v.sinceID = c.Size, ""
	}
	if c := v.outside; c != nil && c.Size == v.tree.size && c.Root != v.tree.root() && !v.strayed {
		// Every checkpoint in the database may have been made with it.
		v.add(Rewritten, 0, v.firstID, "the checkpoint outside was signed for other events than these first %d, and those in the database were made anew; which event is the first that differs can't be told", c.Size)
	}
}

// loose looks at what is in no leaf.
func (v *verifier) loose(l LooseEntry) {
	v.begin()
	v.release()
	of := name{l.Account, l.EventID}
	again := v.waits == of
	v.waits = of
	switch {
	case l.EventID == "":
		v.add(Inserted, unsealedIndex, "", "a marker names no event: nothing is sealed as long as it is there")
	case l.Sealed:
		v.add(Inserted, unsealedIndex, l.EventID, "the event is sealed, and is marked as one to be: nothing is sealed as long as that is there")
	case again && l.Marked:
		v.add(Inserted, unsealedIndex, l.EventID, "the event is marked twice: nothing is sealed as long as both are there")
	case l.Event == nil:
		v.add(Removed, unsealedIndex, l.EventID, "the event was to be sealed and is gone")
	case !l.Marked:
		v.add(Inserted, unsealedIndex, l.EventID, "the event is in no leaf, and no service has marked it, as it is, as one to be sealed")
	default:
		v.Pending++
	}
}

// end looks for what should have come after the last leaf.
func (v *verifier) end() {
	v.begin()
	v.release()
	should, by := v.log.Size, "the tree's own row"
	if v.size > should {
		should, by = v.size, "a checkpoint"
	}
	if v.outside != nil && v.outside.Size > should {
		should, by = v.outside.Size, "the checkpoint outside"
	}
	if v.tree.size < should {
		v.add(CutTail, v.tree.size, "", "the log ends before leaf %d, and %s is of %d; %s", v.tree.size, by, should, after(v.lastID))
		return
	}
	if v.number < v.checkpointsMade() {
		v.add(DeletedCheckpoint, v.size, v.sinceID, "checkpoint %d is gone", v.number+1)
	}
	if v.log.Size < v.tree.size || v.log.Checkpoints < v.number {
		v.add(Changed, v.tree.size-1, v.lastID, "the tree's own row says %d events and %d checkpoints, and there are %d and %d: services take it for an older database",
			v.log.Size, v.log.Checkpoints, v.tree.size, v.number)
	}
}

// after says where something is missing whose name is gone with it.
func after(id string) string {
	if id == "" {
		return "it was the first"
	}
	return "it came after " + id
}
