package idempotency_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"

	"github.com/einmal/einmal/pkg/idempotency"
)

func TestParseKey(t *testing.T) {
	long := strings.Repeat("k", idempotency.MaxKeyLength)
	for _, c := range []struct {
		name  string
		lines []string
		want  idempotency.Key
		err   error
	}{
		// Both spellings.
		{"a bare key is itself", []string{"8e03978e-40d5-43dd-bc93-6894a57f9324"}, "8e03978e-40d5-43dd-bc93-6894a57f9324", nil},
		{"a quoted one is what is between the quotation marks", []string{`"8e03978e"`}, "8e03978e", nil},
		{"every visible ASCII character may be in a quoted key", []string{`"!\"#$%&'()*+,-./0:;<=>?@A[\\]^_` + "`" + `a{|}~"`}, "!\"#$%&'()*+,-./0:;<=>?@A[\\]^_`a{|}~", nil},
		{"all but three in a bare one", []string{"!#$%&'()*+-./0:;<=>?@A[]^_`a{|}~"}, "!#$%&'()*+-./0:;<=>?@A[]^_`a{|}~", nil},
		{"white space around the field value is not part of it", []string{" \tk\t "}, "k", nil},
		{"nor around a quoted one", []string{"\t \"k\" "}, "k", nil},
		{"case matters", []string{"KeY"}, "KeY", nil},
		{"one character is enough", []string{"k"}, "k", nil},
		{"what looks like a path is a key", []string{"../x"}, "../x", nil},
		{"what looks encoded is left alone", []string{"a%0ab"}, "a%0ab", nil},
		{"what looks like a parameter is part of a bare key", []string{"a;b=c"}, "a;b=c", nil},

		// Missing, empty, more than one.
		{"no field is a missing key", nil, "", idempotency.ErrKeyMissing},
		{"no field line is a missing key", []string{}, "", idempotency.ErrKeyMissing},
		{"an empty value is invalid", []string{""}, "", idempotency.ErrKeyInvalid},
		{"only white space is invalid", []string{" \t "}, "", idempotency.ErrKeyInvalid},
		{"an empty quoted key is invalid", []string{`""`}, "", idempotency.ErrKeyInvalid},
		{"two lines are invalid", []string{"a", "b"}, "", idempotency.ErrKeyInvalid},
		{"two equal lines are invalid", []string{"a", "a"}, "", idempotency.ErrKeyInvalid},
		{"a line and an empty one are invalid", []string{"a", ""}, "", idempotency.ErrKeyInvalid},
		{"a list is invalid", []string{"a, b"}, "", idempotency.ErrKeyInvalid},
		{"a list without a space is invalid", []string{"a,b"}, "", idempotency.ErrKeyInvalid},
		{"a list of quoted keys is invalid", []string{`"a", "b"`}, "", idempotency.ErrKeyInvalid},

		// Length.
		{"255 characters are allowed", []string{long}, idempotency.Key(long), nil},
		{"quoted, too", []string{`"` + long + `"`}, idempotency.Key(long), nil},
		{"they are counted after unquoting", []string{`"` + strings.Repeat(`\\`, 255) + `"`}, idempotency.Key(strings.Repeat(`\`, 255)), nil},
		{"256 are not", []string{long + "k"}, "", idempotency.ErrKeyInvalid},
		{"256 quoted are not", []string{`"` + long + `k"`}, "", idempotency.ErrKeyInvalid},
		{"8 KiB are not", []string{strings.Repeat("a", 8<<10)}, "", idempotency.ErrKeyInvalid},

		// Characters.
		{"a space inside is invalid", []string{"a b"}, "", idempotency.ErrKeyInvalid},
		{"also quoted", []string{`"a b"`}, "", idempotency.ErrKeyInvalid},
		{"also at the ends of a quoted key", []string{`" a"`}, "", idempotency.ErrKeyInvalid},
		{"a control character is invalid", []string{"a\x01b"}, "", idempotency.ErrKeyInvalid},
		{"a line break is invalid", []string{"a\nb"}, "", idempotency.ErrKeyInvalid},
		{"a line break at the end is invalid", []string{"a\n"}, "", idempotency.ErrKeyInvalid},
		{"NUL is invalid", []string{"a\x00b"}, "", idempotency.ErrKeyInvalid},
		{"DEL is invalid", []string{"a\x7f"}, "", idempotency.ErrKeyInvalid},
		{"letters beyond ASCII are invalid", []string{"naïve"}, "", idempotency.ErrKeyInvalid},
		{"an emoji is invalid", []string{`"🔑"`}, "", idempotency.ErrKeyInvalid},
		{"a byte that is no UTF-8 is invalid", []string{"a\xff"}, "", idempotency.ErrKeyInvalid},

		// Quoting.
		{"a quotation mark in a bare key is invalid", []string{`a"b`}, "", idempotency.ErrKeyInvalid},
		{"a backslash in a bare key is invalid", []string{`a\b`}, "", idempotency.ErrKeyInvalid},
		{"an open quotation is invalid", []string{`"a`}, "", idempotency.ErrKeyInvalid},
		{"a lone quotation mark is invalid", []string{`"`}, "", idempotency.ErrKeyInvalid},
		{"an escaped closing mark does not close", []string{`"a\"`}, "", idempotency.ErrKeyInvalid},
		{"a backslash at the end is invalid", []string{`"a\`}, "", idempotency.ErrKeyInvalid},
		{"other escapes are invalid", []string{`"a\nb"`}, "", idempotency.ErrKeyInvalid},
		{"parameters are invalid", []string{`"a";b=c`}, "", idempotency.ErrKeyInvalid},
		{"anything after the closing mark is invalid", []string{`"a"b`}, "", idempotency.ErrKeyInvalid},
		{"two quoted keys in a row are invalid", []string{`"a""b"`}, "", idempotency.ErrKeyInvalid},

		// Reserved.
		{"mirror: is ours", []string{"mirror:x"}, "", idempotency.ErrKeyInvalid},
		{"am: is ours", []string{"am:x@y:firing"}, "", idempotency.ErrKeyInvalid},
		{"psp: is ours", []string{"psp:evt_1"}, "", idempotency.ErrKeyInvalid},
		{"quoting does not get around that", []string{`"mirror:x"`}, "", idempotency.ErrKeyInvalid},
		{"nor does nothing after it", []string{"psp:"}, "", idempotency.ErrKeyInvalid},
		{"what only resembles them is not", []string{"Mirror:x"}, "Mirror:x", nil},
		{"nor what has them inside", []string{"x-mirror:y"}, "x-mirror:y", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := idempotency.ParseKey(c.lines)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, c.want, c.err)
			}
		})
	}
	t.Run("says why without repeating the key", func(t *testing.T) {
		for _, line := range []string{"se cret", `"secret`, "mirror:secret", "sécret", strings.Repeat("secret", 99), `"secret";secret`, "secret,"} {
			if _, err := idempotency.ParseKey([]string{line}); err == nil || strings.Contains(err.Error(), "cret") {
				t.Errorf("%q: %v", line, err)
			}
		}
	})
}

func TestKeyHash(t *testing.T) {
	t.Run("is SHA-256 in hexadecimal digits", func(t *testing.T) {
		if got, want := idempotency.Key("abc").Hash(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// A quoted key is a structured-field string, so a reader of those must agree: what both read, they read alike; what we read,
// it reads; what it reads and we don't, breaks one of our own rules.
func FuzzParseKey(f *testing.F) {
	for _, line := range []string{`"a"`, `"a\"b\\c"`, `"a";p`, `"a" , "b"`, `"\n"`, `"`, `""`, ` "a" `, `"am:x"`, "a", "a,b", `"é"`, "\"a\x00\""} {
		f.Add(line)
	}
	pattern := regexp.MustCompile(idempotency.KeyPattern)
	f.Fuzz(func(t *testing.T, line string) {
		key, err := idempotency.ParseKey([]string{line})
		if (err == nil) != (key != "") || err != nil && !errors.Is(err, idempotency.ErrKeyInvalid) {
			t.Fatalf("%q, %v", key, err)
		}
		if err == nil && !pattern.MatchString(string(key)) {
			t.Fatalf("%q does not match %s", key, pattern)
		}
		value := strings.Trim(line, " \t")
		if !strings.HasPrefix(value, `"`) {
			if err == nil && string(key) != value {
				t.Fatalf("%q became %q", value, key)
			}
			return
		}
		text, isString := structuredString(value)
		if err == nil && (!isString || text != string(key)) {
			t.Fatalf("we read %q, a reader of structured fields %q (a string: %v)", key, text, isString)
		}
		if err != nil && isString && pattern.MatchString(text) && !reserved(text) {
			t.Fatalf("we refuse %q: %v", text, err)
		}
	})
}

// structuredString reads an item that is a string without parameters.
func structuredString(value string) (string, bool) {
	item, err := httpsfv.UnmarshalItem([]string{value})
	if err != nil || len(item.Params.Names()) > 0 {
		return "", false
	}
	text, isString := item.Value.(string)
	return text, isString
}

func reserved(key string) bool {
	return strings.HasPrefix(key, "mirror:") || strings.HasPrefix(key, "am:") || strings.HasPrefix(key, "psp:")
}
