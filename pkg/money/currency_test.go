package money_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal/einmal/pkg/money"
)

var update = flag.Bool("update", false, "write what the golden files should hold")

// codes are all codes that could be currencies.
func codes() []string {
	var all []string
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			for c := 'A'; c <= 'Z'; c++ {
				all = append(all, string([]rune{a, b, c}))
			}
		}
	}
	return all
}

// currencies are all that there are.
func currencies() []money.Currency {
	var all []money.Currency
	for _, code := range codes() {
		if c, err := money.ParseCurrency(code); err == nil {
			all = append(all, c)
		}
	}
	return all
}

// An exponent that changes with an upgrade would make every stored amount another one, by a factor of ten or a hundred. So the
// whole list is kept, and a change of it is somebody's decision.
func TestExponentsAreThoseOfISO4217(t *testing.T) {
	const golden = "testdata/exponents.txt"
	var got strings.Builder
	for _, c := range currencies() {
		fmt.Fprintf(&got, "%s %d\n", c, c.Exponent())
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the exponents are not those of %s (-file +code):\n%s", golden, diff)
	}
}

func TestParseCurrency(t *testing.T) {
	for code, exponent := range map[string]int{
		"JPY": 0, "KRW": 0, "VND": 0, "CLP": 0, "XOF": 0,
		"EUR": 2, "USD": 2, "CHF": 2, "HUF": 2, "MGA": 2, "IDR": 2,
		"KWD": 3, "BHD": 3, "TND": 3, "IQD": 3,
		"CLF": 4, "UYW": 4,
	} {
		t.Run(fmt.Sprintf("%s has %d decimals", code, exponent), func(t *testing.T) {
			c, err := money.ParseCurrency(code)
			if err != nil || c.String() != code || c.Exponent() != exponent {
				t.Errorf("got %s with %d, %v", c, c.Exponent(), err)
			}
		})
	}
	for name, code := range map[string]string{
		"lower case is refused":                      "eur",
		"mixed case is refused":                      "Eur",
		"nothing is refused":                         "",
		"white space around it is refused":           " EUR",
		"a symbol is refused":                        "€",
		"a numeric code is refused":                  "978",
		"two letters are refused":                    "EU",
		"four letters are refused":                   "EURO",
		"letters that only look like it are refused": "ЕUR",
		"a code that nobody uses is refused":         "QQQ",
		"a withdrawn currency is refused":            "DEM",
		"no currency is refused":                     "XXX",
		"the code for tests is refused":              "XTS",
		"gold is refused":                            "XAU",
		"silver is refused":                          "XAG",
		"platinum is refused":                        "XPT",
		"palladium is refused":                       "XPD",
		"drawing rights are refused":                 "XDR",
		"SUCRE is refused":                           "XSU",
		"a bond market unit is refused":              "XBA",
		"a coin is refused":                          "BTC",
	} {
		t.Run(name, func(t *testing.T) {
			if c, err := money.ParseCurrency(code); !errors.Is(err, money.ErrCurrency) || c != (money.Currency{}) {
				t.Errorf("%q: got %q, %v", code, c, err)
			}
		})
	}
}
