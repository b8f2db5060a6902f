package simulator

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/einmal/einmal/pkg/money"
)

// form is the parameters of a request. What is wrong with one of them is kept until wrong is asked.
type form struct {
	values url.Values
	read   map[string]bool
	first  *pspError
}

// readForm reads a form or a query.
func readForm(text string) (*form, *pspError) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, &pspError{Type: pspInvalidRequest, Message: "The request is not a form."}
	}
	return &form{values: values, read: map[string]bool{}}, nil
}

// ignored are parameters that change nothing here. Where one has a name in brackets, it is about what is before it.
var ignored = []string{
	"automatic_payment_methods", "expand", "off_session", "payment_method_types", "return_url", "statement_descriptor",
	"statement_descriptor_suffix",
}

// wrong is what is wrong with the form, the parameters that nobody has read included.
func (f *form) wrong() *pspError {
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		base, _, _ := strings.Cut(name, "[")
		switch {
		case f.first != nil:
		case len(f.values[name]) > 1 && !strings.HasSuffix(name, "[]"):
			f.violate("", name, "The parameter was sent more than once.")
		case !f.read[name] && !slices.Contains(ignored, base):
			f.violate("parameter_unknown", name, "Received unknown parameter: "+name)
		}
	}
	return f.first
}

func (f *form) violate(code, param, message string) {
	if f.first == nil {
		f.first = &pspError{Type: pspInvalidRequest, Code: code, Param: param, Message: message}
	}
}

// text is a parameter, or empty.
func (f *form) text(name string) string {
	f.read[name] = true
	return f.values.Get(name)
}

func (f *form) required(name string) string {
	text := f.text(name)
	if text == "" {
		f.violate("parameter_missing", name, "Missing required param: "+name+".")
	}
	return text
}

// oneOf is a parameter that has few values, or what it is when it is not sent.
func (f *form) oneOf(name, otherwise string, values ...string) string {
	text := f.text(name)
	switch {
	case text == "":
		return otherwise
	case !slices.Contains(values, text):
		f.violate("", name, "Invalid "+name+": must be one of "+strings.Join(values, ", "))
	}
	return text
}

// whole is a whole number, or otherwise.
func (f *form) whole(name string, otherwise int64) int64 {
	text := f.text(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f.violate("parameter_invalid_integer", name, "Invalid integer: "+text)
	}
	return n
}

// amount is a number of minor units. otherwise stands for a parameter that was not sent; 0: it must be sent.
func (f *form) amount(name string, otherwise int64) int64 {
	if otherwise == 0 && f.required(name) == "" {
		return 0
	}
	n := f.whole(name, otherwise)
	switch {
	case n < 1:
		f.violate("parameter_invalid_integer", name, "This value must be greater than or equal to 1.")
	case n > money.MaxMinor:
		f.violate("amount_too_large", name, "This amount is too large.")
	}
	return n
}

// currency is lower-case, as Stripe writes it.
func (f *form) currency(name string) string {
	text := f.required(name)
	if _, err := money.ParseCurrency(strings.ToUpper(text)); text != "" && err != nil {
		f.violate("", name, "Invalid currency: "+text)
	}
	return strings.ToLower(text)
}

// Stripe's limits: https://docs.stripe.com/api/metadata.
const (
	maxMetadata      = 50
	maxMetadataName  = 40
	maxMetadataValue = 500
)

// metadata are the parameters metadata[name].
func (f *form) metadata() map[string]string {
	all := map[string]string{}
	for param := range f.values {
		name, ok := strings.CutPrefix(param, "metadata[")
		if !ok || !strings.HasSuffix(name, "]") {
			continue
		}
		name = strings.TrimSuffix(name, "]")
		all[name] = f.text(param)
		if len(name) > maxMetadataName || len(all[name]) > maxMetadataValue {
			f.violate("", param, "Metadata names have at most 40 characters, values 500.")
		}
	}
	if len(all) > maxMetadata {
		f.violate("", "metadata", "Metadata has at most 50 names.")
	}
	return all
}
