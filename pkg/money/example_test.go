package money_test

import (
	"errors"
	"fmt"

	"github.com/einmal/einmal/pkg/money"
)

// The same digits are another amount in another currency, so text and currency are read together.
func ExampleParse() {
	for _, currency := range []string{"JPY", "EUR", "KWD", "CLF"} {
		a, err := money.Parse("125", currency)
		fmt.Println(a, a.Currency, a.Minor, err)
	}
	// Output:
	// 125 JPY 125 <nil>
	// 125.00 EUR 12500 <nil>
	// 125.000 KWD 125000 <nil>
	// 125.0000 CLF 1250000 <nil>
}

// Two spellings of an amount are one amount.
func ExampleAmount() {
	short, _ := money.Parse("12.5", "EUR")
	long, _ := money.Parse("12.50", "EUR")
	fmt.Println(short == long, short, long)
	// Output: true 12.50 12.50
}

// An error says what to change, and can be recognised.
func ExampleParse_refused() {
	_, err := money.Parse("20.00", "JPY")
	fmt.Println(err)
	fmt.Println(errors.Is(err, money.ErrDecimals))
	// Output:
	// must not have more decimals than its currency: JPY has none
	// true
}

// What is kept as a number of minor units is an amount again only together with its currency.
func ExampleFromMinor() {
	remaining, err := money.FromMinor(92_000, "KWD")
	fmt.Println(remaining, err)
	// Output: 92.000 <nil>
}
