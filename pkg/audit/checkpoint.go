package audit

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"gorm.io/gorm"
)

// Checkpoint is what is signed about a log: that its first Size leaves have this root. Its text is that of a checkpoint of
// C2SP tlog-checkpoint, with two lines of our own below:
//
//	einmal/tickets/9f0c…     the log: service, and the name that its database was given
//	4711                     leaves
//	q83v…=                   root, base64
//	number 12                checkpoints are numbered, from 1, without a gap
//	previous 3q2+7w…=        SHA-256 of the checkpoint before, with its signature; of nothing in the first
type Checkpoint struct {
	Origin   string
	Size     int64
	Root     tlog.Hash
	Number   int64
	Previous [sha256.Size]byte
}

// ErrForeignKey means that a checkpoint is signed by nobody who is believed.
var ErrForeignKey = errors.New("signed by a key that is not believed")

// errNoCheckpoint means that a text is not a checkpoint with a valid signature of ours: somebody has changed it.
var errNoCheckpoint = errors.New("not a checkpoint as it was signed")

func (c Checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\nnumber %d\nprevious %s\n", c.Origin, c.Size, c.Root, c.Number, base64.StdEncoding.EncodeToString(c.Previous[:]))
}

// sign returns the checkpoint as a signed note.
func (c Checkpoint) sign(key note.Signer) (string, error) {
	signed, err := note.Sign(&note.Note{Text: c.text()}, key)
	if err != nil {
		return "", fmt.Errorf("sign checkpoint: %w", err)
	}
	return string(signed), nil
}

// digest is what the next checkpoint says of this signed one.
func digest(signed string) [sha256.Size]byte { return sha256.Sum256([]byte(signed)) }

// OpenCheckpoint reads a signed checkpoint and returns it with the name and hash of the key that has signed it. ErrForeignKey: none of the keys
// has, and the checkpoint is what the note claims all the same.
func OpenCheckpoint(signed string, keys Keys) (c Checkpoint, key string, err error) {
	opened, err := note.Open([]byte(signed), keys.verifiers())
	var unverified *note.UnverifiedNoteError
	switch {
	case errors.As(err, &unverified):
		opened = unverified.Note
		opened.Sigs = opened.UnverifiedSigs
		err = fmt.Errorf("open checkpoint: %w", ErrForeignKey)
	case err != nil:
		return c, "", fmt.Errorf("open checkpoint: %w: %w", errNoCheckpoint, err)
	}
	c, parseErr := parseCheckpoint(opened.Text)
	if parseErr != nil {
		return c, "", parseErr
	}
	return c, keyName(opened.Sigs[0].Name, opened.Sigs[0].Hash), err
}

func parseCheckpoint(text string) (c Checkpoint, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 6 {
		return c, fmt.Errorf("open checkpoint: %w: it has %d lines", errNoCheckpoint, len(lines)-1)
	}
	c.Origin = lines[0]
	var errs [4]error
	c.Size, errs[0] = strconv.ParseInt(lines[1], 10, 64)
	c.Root, errs[1] = tlog.ParseHash(lines[2])
	c.Number, errs[2] = strconv.ParseInt(strings.TrimPrefix(lines[3], "number "), 10, 64)
	previous, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(lines[4], "previous "))
	errs[3] = err
	copy(c.Previous[:], previous)
	if err := errors.Join(errs[:]...); err != nil || c.text() != text {
		return c, fmt.Errorf("open checkpoint: %w: %w", errNoCheckpoint, err)
	}
	return c, nil
}

// readCheckpoint reads a signed checkpoint; of number 0, the one before the first, it is empty.
func readCheckpoint(db *gorm.DB, number int64) (signed string, err error) {
	if number == 0 {
		return "", nil
	}
	var rows []string
	if err := db.Raw("SELECT note FROM audit_checkpoints WHERE number = ?", number).Scan(&rows).Error; err != nil {
		return "", fmt.Errorf("read checkpoint: %w", err)
	}
	if len(rows) == 0 {
		return "", fmt.Errorf("read checkpoint: number %d is gone; einmal audit verify says what else", number)
	}
	return rows[0], nil
}
