package money

import (
	"errors"
	"fmt"

	"github.com/bojanz/currency"
)

// ErrCurrency means that the text is not the code of a currency that amounts can be in.
var ErrCurrency = errors.New("must be an upper-case ISO 4217 code of a currency that has amounts, such as EUR")

// Currency is a currency of ISO 4217 in which amounts can be: one that exists today and has a defined minor unit, so neither
// gold (XAU) nor "no currency" (XXX). Only ParseCurrency makes one; the zero Currency is none.
type Currency struct {
	code     string
	exponent int
}

// ParseCurrency reads an alphabetic code, upper-case as ISO 4217 writes it: "eur" is refused rather than guessed at.
func ParseCurrency(code string) (Currency, error) {
	exponent, ok := currency.GetDigits(code)
	if !ok {
		return Currency{}, ErrCurrency
	}
	return Currency{code, int(exponent)}, nil
}

// String is the code.
func (c Currency) String() string { return c.code }

// Exponent is how many decimals an amount has: one unit is ten to the power of it minor units. JPY 0, EUR 2, KWD 3, CLF 4.
func (c Currency) Exponent() int { return c.exponent }

// decimals says how many decimals amounts may have.
func (c Currency) decimals() string {
	if c.exponent == 0 {
		return c.code + " has none"
	}
	return fmt.Sprintf("%s has %d", c, c.exponent)
}
