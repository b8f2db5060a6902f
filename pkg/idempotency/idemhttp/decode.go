package idemhttp

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/einmal/einmal/pkg/problem"
)

// Command is what a body is decoded into: a pointer to a struct. Its members are the fields with a json tag; fields without one,
// and those of embedded structs, are none. They are text, booleans, integers (numbers are whole: an amount is text), structs,
// pointers, slices and maps of these, or read themselves from text. It is made with the defaults in it, so that an absent member
// and its default are one command.
type Command interface {
	// Validate returns everything that is wrong with the command, with JSON pointers.
	Validate() []problem.Violation
}

// MaxInteger is the largest number, and its negative the smallest, that a body may hold. Beyond it JSON numbers are no longer
// exact everywhere: RFC 8785 prints …993 and …992 alike, so two commands would have one fingerprint.
const MaxInteger = 1<<53 - 1

// decode reads body into command. Syntax comes first and alone (what is not JSON can't be judged further); then every violation
// of structure and of the command's own rules, in the order of the body and then of Validate. What is wrong beside the body goes
// first.
func decode(body []byte, command Command, beside ...problem.Violation) error {
	d := &decoder{}
	if err := d.scan(body); err != nil {
		return err
	}
	d.command(body, command, "")
	return d.problem(beside...)
}

// scan reads the whole text once. It returns malformed-body for what is not one JSON object in valid UTF-8 without duplicate
// members, lone surrogates or U+0000 (which PostgreSQL can't store), and notes nulls and inexact numbers.
func (d *decoder) scan(body []byte) error {
	malformed := func(detail string, args ...any) error {
		return problem.New(problem.MalformedBody, "The body is not one JSON object: "+fmt.Sprintf(detail, args...)+".")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return malformed("it is empty; send {} where there is nothing to say")
	}
	tokens := jsontext.NewDecoder(bytes.NewReader(body))
	if tokens.PeekKind() != '{' {
		if _, err := tokens.ReadToken(); err == nil {
			return malformed("it begins with something else than {")
		}
	}
	for {
		token, err := tokens.ReadToken()
		if err != nil {
			return malformed("%s", syntax(err, tokens.InputOffset()))
		}
		if tokens.StackDepth() == 0 {
			if rest := bytes.Trim(body[tokens.InputOffset():], " \t\r\n"); len(rest) > 0 {
				return malformed("something follows it at byte %d", tokens.InputOffset())
			}
			return nil
		}
		switch token.Kind() {
		case '"':
			if strings.ContainsRune(token.String(), 0) {
				return malformed("there is a U+0000 in a text that ends at byte %d", tokens.InputOffset())
			}
		case 'n':
			d.violateHere(tokens, "must not be null: it has a value, or, where it may be absent, is left out")
		case '0':
			n, err := strconv.ParseInt(token.String(), 10, 64)
			if err != nil || n > MaxInteger || n < -MaxInteger {
				d.violateHere(tokens, "must be a whole number between -%d and %d, without fraction or exponent", int64(MaxInteger), int64(MaxInteger))
			}
		}
	}
}

// violateHere is violate at the token that was read last. A pointer is as long as its place is deep, so it is made only where it
// will be told.
func (d *decoder) violateHere(tokens *jsontext.Decoder, format string, args ...any) {
	if !d.full() {
		d.violate(tokens.StackPointer(), format, args...)
	}
}

// syntax says what is wrong with the text without repeating any of it.
func syntax(err error, offset int64) string {
	var s *jsontext.SyntacticError
	if errors.As(err, &s) {
		offset = s.ByteOffset
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			return fmt.Sprintf("a member stands twice, at byte %d", offset)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Sprintf("it ends too early, at byte %d", offset)
		}
	}
	return fmt.Sprintf("there is a syntax error (or text that is not valid Unicode) at byte %d", offset)
}

// command decodes and validates a command that stands at a place of the body.
func (d *decoder) command(raw jsontext.Value, command Command, at jsontext.Pointer) {
	d.value(raw, reflect.ValueOf(command).Elem(), at)
	sent, folded := map[string]bool{}, map[string]bool{} // the members that are there, as they are spelled and in whatever case
	if raw.Kind() == '{' {
		each(raw, func(name string, _ jsontext.Value) { sent[name], folded[strings.ToLower(name)] = true, true })
	}
	for _, v := range command.Validate() {
		member := jsontext.Pointer(v.Pointer).LastToken()
		top := jsontext.Pointer(v.Pointer) == jsontext.Pointer("").AppendToken(member)
		switch {
		case top && !sent[member] && folded[member]:
			continue // it is there in another case, and that has been told
		case top && !sent[member]:
			v.Detail = "is missing: it " + v.Detail
		}
		d.violate(at+jsontext.Pointer(v.Pointer), "%s", v.Detail)
	}
}

// value decodes one JSON value into v. Structs know their members exactly: no other names, no other case.
func (d *decoder) value(raw jsontext.Value, v reflect.Value, at jsontext.Pointer) {
	if d.full() || d.violated(at) { // the second: null, or an inexact number
		return
	}
	kind := raw.Kind()
	if v.Type() == reflect.TypeFor[jsontext.Value]() {
		v.SetBytes(raw.Clone())
		return
	}
	_, isText := v.Addr().Interface().(encoding.TextUnmarshaler)
	switch {
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(raw, v.Elem(), at)
	case (v.Kind() == reflect.String || isText) && kind != '"':
		d.violate(at, "must be a text in quotation marks")
	case v.Kind() == reflect.Bool && kind != 't' && kind != 'f':
		d.violate(at, "must be true or false")
	case (v.CanInt() || v.CanUint()) && kind != '0':
		d.violate(at, "must be a number")
	case !isText && (v.Kind() == reflect.Struct || v.Kind() == reflect.Map) && kind != '{':
		d.violate(at, "must be an object")
	case v.Kind() == reflect.Slice && kind != '[':
		d.violate(at, "must be an array")
	case !isText && v.Kind() == reflect.Struct:
		d.structure(raw, v, at)
	case v.Kind() == reflect.Map:
		d.mapping(raw, v, at)
	case v.Kind() == reflect.Slice:
		d.array(raw, v, at)
	default:
		if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
			d.violate(at, "is out of range")
		}
	}
}

func (d *decoder) structure(raw jsontext.Value, v reflect.Value, at jsontext.Pointer) {
	fields := map[string]reflect.Value{}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" { // those are no members
			fields[name] = v.Field(i)
		}
	}
	each(raw, func(name string, member jsontext.Value) {
		place := at.AppendToken(name)
		field, known := fields[name]
		if known {
			d.value(member, field, place)
			return
		}
		for right := range fields {
			if strings.EqualFold(right, name) {
				d.violate(place, "is not a member of this command; did you mean %q?", right)
			}
		}
		d.violate(place, "is not a member of this command")
	})
}

func (d *decoder) mapping(raw jsontext.Value, v reflect.Value, at jsontext.Pointer) {
	v.Set(reflect.MakeMap(v.Type()))
	each(raw, func(name string, member jsontext.Value) {
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(member, element, at.AppendToken(name))
		v.SetMapIndex(reflect.ValueOf(name), element)
	})
}

func (d *decoder) array(raw jsontext.Value, v reflect.Value, at jsontext.Pointer) {
	v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // a list replaces its default
	tokens := jsontext.NewDecoder(bytes.NewReader(raw))
	_, _ = tokens.ReadToken() // [: scan has read all of this before
	for i := 0; tokens.PeekKind() != ']'; i++ {
		item, _ := tokens.ReadValue()
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(item, element, at.AppendToken(strconv.Itoa(i)))
		v.Set(reflect.Append(v, element))
	}
}

// each calls f for every member of an object that scan has read before.
func each(raw jsontext.Value, f func(name string, member jsontext.Value)) {
	tokens := jsontext.NewDecoder(bytes.NewReader(raw))
	_, _ = tokens.ReadToken()
	for tokens.PeekKind() != '}' {
		name, _ := tokens.ReadToken()
		text := name.String()
		member, _ := tokens.ReadValue()
		f(text, member.Clone())
	}
}
