package money

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Pattern is the syntax of an amount as text, as published in the interface descriptions.
const Pattern = `^(0|[1-9][0-9]*)(\.[0-9]+)?$`

var pattern = regexp.MustCompile(Pattern)

const (
	// MaxMinor is the largest amount in minor units: 15 digits. Every one of them is exact wherever it may go, also where numbers
	// are doubles (2^53 has 16 digits), and a thousand of them can be added in an int64.
	MaxMinor = 999_999_999_999_999

	maxDigits = 15

	// MaxLength is the length of the longest amount: its digits and a point. What is longer is not even read.
	MaxLength = maxDigits + 1
)

// What can be wrong with an amount. Where it helps, the wrapping error says more.
var (
	// ErrTooLong: the text is longer than any amount.
	ErrTooLong = fmt.Errorf("must have at most %d characters", MaxLength)

	// ErrSyntax: the text does not match Pattern.
	ErrSyntax = errors.New(`must be a plain decimal number such as "12.50": no sign, exponent, separator, white space or leading zero`)

	// ErrDecimals: there are more decimals than the currency has, be they zeros.
	ErrDecimals = errors.New("must not have more decimals than its currency")

	// ErrNotPositive: the amount is zero, or negative.
	ErrNotPositive = errors.New("must be more than zero")

	// ErrTooLarge: the amount is more than MaxMinor.
	ErrTooLarge = fmt.Errorf("must have at most %d digits in minor units", maxDigits)
)

// Amount is an amount of money. Amounts are equal (==) if and only if they are the same money.
type Amount struct {
	Minor    int64 // in the smallest unit of the currency: 1250 is 12.50 EUR
	Currency Currency
}

// Parse reads an amount as a client writes it: more than zero, MaxMinor at most. What is not an amount is recognised by its
// length and form, before anything is calculated. A wrong currency is reported only for a text that could be an amount.
func Parse(text, currency string) (Amount, error) {
	switch {
	case len(text) > MaxLength:
		return Amount{}, ErrTooLong
	case !pattern.MatchString(text):
		return Amount{}, ErrSyntax
	}
	c, err := ParseCurrency(currency)
	if err != nil {
		return Amount{}, err
	}
	units, decimals, _ := strings.Cut(text, ".")
	if len(decimals) > c.exponent {
		return Amount{}, fmt.Errorf("%w: %s", ErrDecimals, c.decimals())
	}
	digits := strings.TrimLeft(units+decimals+strings.Repeat("0", c.exponent-len(decimals)), "0")
	switch {
	case digits == "":
		return Amount{}, ErrNotPositive
	case len(digits) > maxDigits:
		return Amount{}, ErrTooLarge
	}
	minor, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return Amount{}, fmt.Errorf("read amount: %w", err) // 15 digits always fit
	}
	return Amount{minor, c}, nil
}

// FromMinor is the amount that a number of minor units says, as a database or a payment provider keeps it. Zero is allowed: it
// is what remains when everything is paid back.
func FromMinor(minor int64, currency string) (Amount, error) {
	c, err := ParseCurrency(currency)
	switch {
	case err != nil:
		return Amount{}, err
	case minor < 0:
		return Amount{}, fmt.Errorf("%w, or zero", ErrNotPositive)
	case minor > MaxMinor:
		return Amount{}, ErrTooLarge
	}
	return Amount{minor, c}, nil
}

// String is the amount with all decimals of its currency, and without the currency: "12.50", "12" for yen. Parse reads it back,
// unless it is zero or negative.
func (a Amount) String() string {
	digits, sign := strconv.FormatInt(a.Minor, 10), ""
	if a.Minor < 0 {
		digits, sign = digits[1:], "-"
	}
	exponent := a.Currency.exponent
	if exponent == 0 {
		return sign + digits
	}
	if missing := exponent + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - exponent
	return sign + digits[:point] + "." + digits[point:]
}
