package money_test

import (
	"errors"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/einmal/einmal/pkg/money"
)

// Minor units to text and back is the same money, in every currency.
func TestMinorUnitsSurviveText(t *testing.T) {
	all := currencies()
	rapid.Check(t, func(t *rapid.T) {
		currency := rapid.SampledFrom(all).Draw(t, "currency").String()
		want, err := money.FromMinor(rapid.Int64Range(1, money.MaxMinor).Draw(t, "minor"), currency)
		if err != nil {
			t.Fatal(err)
		}
		got, err := money.Parse(want.String(), currency)
		if err != nil || got != want {
			t.Fatalf("%d was printed as %q and read as %d, %v", want.Minor, want, got.Minor, err)
		}
	})
}

// Text to minor units and back is the same number, however many of its decimals were written.
func TestTextSurvivesMinorUnits(t *testing.T) {
	all := currencies()
	rapid.Check(t, func(t *rapid.T) {
		currency := rapid.SampledFrom(all).Draw(t, "currency")
		text := rapid.StringMatching(`(0|[1-9][0-9]{0,9})`).Draw(t, "units")
		if decimals := rapid.IntRange(0, currency.Exponent()).Draw(t, "decimals"); decimals > 0 {
			text += "." + rapid.StringOfN(rapid.RuneFrom([]rune("0123456789")), decimals, decimals, -1).Draw(t, "digits")
		}
		a, err := money.Parse(text, currency.String())
		if strings.Trim(text, "0.") == "" {
			if !errors.Is(err, money.ErrNotPositive) {
				t.Fatalf("%q is zero: %v", text, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("%q %s: %v", text, currency, err)
		}
		if rational(t, a.String()).Cmp(rational(t, text)) != 0 {
			t.Fatalf("%q was printed as %q", text, a)
		}
		if _, decimals, _ := strings.Cut(a.String(), "."); len(decimals) != currency.Exponent() {
			t.Fatalf("%q has not all decimals of %s", a, currency)
		}
	})
}

// Whatever is sent: it is accepted exactly where an exact calculation says that it is an amount, and then it is that amount.
func FuzzParse(f *testing.F) {
	for _, seed := range [][2]string{
		{"12.50", "EUR"},
		{"0", "EUR"},
		{"0.001", "KWD"},
		{"20.00", "JPY"},
		{"1e9", "EUR"},
		{"999999999999999", "JPY"},
		{"1000000000000000", "JPY"},
		{"99999999999.9999", "CLF"},
		{"-1", "EUR"},
		{"1", "XXX"},
		{"٣", "EUR"},
		{"", ""},
		{"1\n", "EUR"},
	} {
		f.Add(seed[0], seed[1])
	}
	exponents := map[string]int{}
	for _, c := range currencies() {
		exponents[c.String()] = c.Exponent()
	}
	form := regexp.MustCompile(money.Pattern)
	f.Fuzz(func(t *testing.T, text, currency string) {
		a, err := money.Parse(text, currency)
		exponent, exists := exponents[currency]
		want := new(big.Rat)
		isAmount := len(text) < 100 && form.MatchString(text) && exists
		if isAmount {
			_, decimals, _ := strings.Cut(text, ".")
			scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exponent)), nil)
			want.Mul(rational(t, text), new(big.Rat).SetInt(scale))
			isAmount = len(decimals) <= exponent && want.Sign() > 0 && want.Cmp(big.NewRat(money.MaxMinor, 1)) <= 0
		}
		if (err == nil) != isAmount {
			t.Fatalf("%q %q: %v, and an exact calculation says %v", text, currency, err, isAmount)
		}
		if err == nil && want.Cmp(big.NewRat(a.Minor, 1)) != 0 {
			t.Fatalf("%q %s is %s, not %d", text, currency, want, a.Minor)
		}
	})
}

func rational(t interface{ Fatalf(string, ...any) }, text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return r
}
