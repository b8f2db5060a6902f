package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Key is an idempotency key: 1 to 255 characters of '!' to '~', case-sensitive, unique within its account.
type Key string

// MaxKeyLength bounds a key to what draft-ietf-httpapi-idempotency-key-header's implementers commonly accept, and well below
// what an index row holds.
const MaxKeyLength = 255

// KeyPattern is the syntax of a key after unquoting, as published in the policy.
const KeyPattern = `^[!-~]{1,255}$`

var (
	// ErrKeyMissing: the request has no Idempotency-Key field.
	ErrKeyMissing = errors.New("idempotency key missing")

	// ErrKeyInvalid: the field is there and is not exactly one well-formed key. The text of the wrapping error says why
	// and never repeats the value.
	ErrKeyInvalid = errors.New("idempotency key invalid")
)

// reserved are the beginnings of keys that the services make themselves: for following operations, and for what the outside
// world reports without a key of its own. A client that could use them would collide with those.
var reserved = []string{"mirror:", "am:", "psp:"}

// ParseKey reads the Idempotency-Key field lines of a request (http.Header.Values, not Get: two lines are an error).
//
// A value that begins with a quotation mark is a structured-field string (RFC 9651, section 3.3.3), as
// draft-ietf-httpapi-idempotency-key-header-07 asks; parameters are refused. Any other value is the key itself, as many
// clients send it, and contains no '"', '\' or ','. Both spellings name one key.
func ParseKey(lines []string) (Key, error) {
	switch len(lines) {
	case 0:
		return "", ErrKeyMissing
	case 1:
	default:
		return "", fmt.Errorf("%w: the Idempotency-Key field is there %d times; send it once", ErrKeyInvalid, len(lines))
	}
	value := strings.Trim(lines[0], " \t")
	if quoted, ok := strings.CutPrefix(value, `"`); ok {
		unquoted, err := unquote(quoted)
		if err != nil {
			return "", err
		}
		value = unquoted
	} else if strings.ContainsAny(value, `"\,`) {
		return "", fmt.Errorf(`%w: an unquoted key contains no quotation mark, backslash or comma; send it as a quoted string`, ErrKeyInvalid)
	}
	switch {
	case value == "":
		return "", fmt.Errorf("%w: it is empty", ErrKeyInvalid)
	case len(value) > MaxKeyLength:
		return "", fmt.Errorf("%w: it has more than %d characters", ErrKeyInvalid, MaxKeyLength)
	}
	for i := range len(value) {
		if value[i] < '!' || value[i] > '~' {
			return "", fmt.Errorf("%w: only the characters from '!' to '~' are allowed (visible ASCII, no spaces)", ErrKeyInvalid)
		}
	}
	for _, beginning := range reserved {
		if strings.HasPrefix(value, beginning) {
			return "", fmt.Errorf("%w: keys that begin with %q are made by the service", ErrKeyInvalid, beginning)
		}
	}
	return Key(value), nil
}

// Hash is the key as audit events keep it: hex SHA-256. A key is a secret while its operation can be replayed.
func (k Key) Hash() string {
	sum := sha256.Sum256([]byte(k))
	return hex.EncodeToString(sum[:])
}

// madeAt is when a key was made, which a UUIDv7 tells (RFC 9562, section 5.7). Only one that is written as such, with hyphens, is taken
// for one: among keys that are hashes, some would look like it by chance.
func (k Key) madeAt() (time.Time, bool) {
	const form = "xxxxxxxx-xxxx-7xxx-vxxx-xxxxxxxxxxxx"
	if len(k) != len(form) {
		return time.Time{}, false
	}
	for i := range len(form) {
		fits := isHex(k[i])
		switch form[i] {
		case '-', '7':
			fits = k[i] == form[i]
		case 'v': // the variant: the two highest bits are 10
			fits = strings.IndexByte("89abAB", k[i]) >= 0
		}
		if !fits {
			return time.Time{}, false
		}
	}
	milli, _ := strconv.ParseInt(string(k[:8]+k[9:13]), 16, 64) // twelve hexadecimal digits, as was just seen
	return time.UnixMilli(milli).UTC(), true
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// unquote reads what follows the opening quotation mark of a structured-field string.
func unquote(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", fmt.Errorf(`%w: in a quoted key a backslash stands only before a quotation mark or a backslash`, ErrKeyInvalid)
			}
		case '"':
			if i != len(s)-1 {
				return "", fmt.Errorf("%w: something follows the closing quotation mark; one key, no parameters", ErrKeyInvalid)
			}
			return b.String(), nil
		}
		b.WriteByte(s[i])
	}
	return "", fmt.Errorf("%w: the closing quotation mark is missing", ErrKeyInvalid)
}
