package agent

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// header is the first line of a journal. Whatever does not begin with it is somebody else's file, and is neither read nor cut.
//
// Every release reads the journals of those before it. A record gains members without another version: each is one that may be missing, and a release
// that does not know it refuses the whole journal ([ErrOtherRelease]) instead of acting without what it says. So after a step back to an
// older release the newer one has to finish what it has begun. The version rises when lines are written in another form.
const header = journals + "1\n"

const journals = "einmal agent journal "

// record is one line of the journal after the header: eight hexadecimal digits of a CRC-32C, a space, JSON, and a line feed.
//
// Lines, because a person who has to decide reads the journal with what is at hand. A checksum, because a line that ends with a line feed may still
// be torn: a block of it that never reached the disk is full of zeros. JSON in one line holds no line feed, so a damaged record can't hide the
// next one; and every record has a number, so none can be missing unseen.
type record struct {
	Number int64     `json:"n"`     // 1, 2, 3 …
	Entry  int64     `json:"entry"` // the number of the record with its intention
	At     time.Time `json:"at"`

	// One of these.
	Intention *Intention `json:"intention,omitzero"`  // it begins
	Budget    *Budget    `json:"budget,omitzero"`     // whoever asks again gives it another
	RunBudget *Budget    `json:"run_budget,omitzero"` // the same for its run
	Attempt   int        `json:"attempt,omitzero"`    // the nth is about to leave
	Answer    *Seen      `json:"answer,omitzero"`     // what came of the last attempt
	Look      *Seen      `json:"look,omitzero"`       // what a question showed
	End       *End       `json:"end,omitzero"`        // it is settled, or handed over
}

// ErrNotAJournal means that a file is something else. It is left as it is.
var ErrNotAJournal = errors.New("the file is no journal of an agent")

// ErrOtherRelease means that a journal is whole, and says something that this release does not know. It is left as it is.
var ErrOtherRelease = errors.New("the journal was written by another release of the agent")

// ErrDamaged means that a record in the middle of the journal can't be read, although it was on disk: others follow it. Nothing is cut, since what
// was sent may stand there.
var ErrDamaged = errors.New("the journal is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (r record) line() ([]byte, error) {
	// What a target says may be no UTF-8, which must not keep it out of the journal.
	text, err := json.Marshal(r, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	if bytes.IndexByte(text, '\n') >= 0 {
		return nil, errors.New("encode record: its JSON has several lines")
	}
	return sealed(text), nil
}

func sealed(text []byte) []byte {
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(text, castagnoli), text)
}

// scan reads a journal. whole is how much of it is whole: what follows is a record that was being written when its process or its machine
// died, of which nobody was told that it is on disk.
func scan(data []byte) (records []record, whole int, err error) {
	if !bytes.HasPrefix(data, []byte(header)) {
		begun := bytes.TrimRight(data, "\x00") // it was being made
		if len(begun) < len(header) && bytes.HasPrefix([]byte(header), begun) {
			return nil, 0, nil
		}
		if first, _, ended := bytes.Cut(data, []byte("\n")); ended && isVersion(first) {
			return nil, 0, fmt.Errorf("%w: its first line is %q", ErrOtherRelease, first)
		}
		return nil, 0, ErrNotAJournal
	}
	for whole = len(header); whole < len(data); {
		line, _, ended := bytes.Cut(data[whole:], []byte("\n"))
		text, sound := checked(line)
		if !ended || !sound {
			break
		}
		r, err := parse(text, int64(len(records)+1))
		if err != nil {
			return nil, 0, fmt.Errorf("%w (at byte %d)", err, whole)
		}
		records = append(records, r)
		whole += len(line) + 1
	}
	if !torn(data[whole:]) {
		return nil, 0, fmt.Errorf("%w: the record after number %d, at byte %d, has been changed since it was written", ErrDamaged, len(records), whole)
	}
	return records, whole, nil
}

// isVersion tells whether a line is the header of a journal of some version.
func isVersion(line []byte) bool {
	version, found := strings.CutPrefix(string(line), journals)
	_, err := strconv.ParseUint(version, 10, 16)
	return found && err == nil
}

// checked is the JSON of a line whose checksum is right.
func checked(line []byte) (text []byte, sound bool) {
	sum, text, _ := bytes.Cut(line, []byte(" "))
	want, err := strconv.ParseUint(string(sum), 16, 32)
	return text, err == nil && len(sum) == 8 && uint32(want) == crc32.Checksum(text, castagnoli)
}

func parse(text []byte, number int64) (r record, err error) {
	if err := json.Unmarshal(text, &r, json.RejectUnknownMembers(true)); err != nil {
		why := ErrDamaged
		if unknown := (*json.SemanticError)(nil); errors.As(err, &unknown) {
			why = ErrOtherRelease // its checksum is right, and it is JSON
		}
		return r, fmt.Errorf("%w: record %d: %w", why, number, err)
	}
	if r.Number != number {
		return r, fmt.Errorf("%w: a record has the number %d where %d is expected", ErrDamaged, r.Number, number)
	}
	return r, nil
}

// torn tells whether the end of a journal can be what is left of one write that did not come to its end: a part of a line, or one with blocks that
// never reached the disk. A line that is there to its end and has another checksum was changed later.
func torn(tail []byte) bool {
	feed := bytes.IndexByte(tail, '\n')
	return feed < 0 || feed == len(tail)-1 && bytes.IndexByte(tail, 0) >= 0
}
