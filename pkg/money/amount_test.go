package money_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/einmal/einmal/pkg/money"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, text, currency string
		minor                int64
		printed              string
	}{
		{"no decimals: whole units", "2000", "JPY", 2000, "2000"},
		{"the smallest amount without decimals", "1", "JPY", 1, "1"},
		{"the largest without decimals", "999999999999999", "KRW", money.MaxMinor, "999999999999999"},
		{"two decimals", "12.50", "EUR", 1250, "12.50"},
		{"one of two", "12.5", "EUR", 1250, "12.50"},
		{"none of two", "12", "EUR", 1200, "12.00"},
		{"the smallest with two", "0.01", "EUR", 1, "0.01"},
		{"a tenth", "0.1", "EUR", 10, "0.10"},
		{"what a float gets wrong", "1.15", "USD", 115, "1.15"},
		{"and here", "4.35", "USD", 435, "4.35"},
		{"and 19.99", "19.99", "USD", 1999, "19.99"},
		{"the largest with two", "9999999999999.99", "EUR", money.MaxMinor, "9999999999999.99"},
		{"three decimals", "1.234", "KWD", 1234, "1.234"},
		{"two of three", "92.00", "KWD", 92000, "92.000"},
		{"the smallest with three", "0.001", "KWD", 1, "0.001"},
		{"the largest with three", "999999999999.999", "KWD", money.MaxMinor, "999999999999.999"},
		{"four decimals", "1.2345", "CLF", 12345, "1.2345"},
		{"the smallest with four", "0.0001", "CLF", 1, "0.0001"},
		{"the largest with four", "99999999999.9999", "CLF", money.MaxMinor, "99999999999.9999"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := money.Parse(c.text, c.currency)
			if err != nil || a.Minor != c.minor || a.Currency.String() != c.currency {
				t.Errorf("got %d %s, %v; want %d", a.Minor, a.Currency, err, c.minor)
			}
			if a.String() != c.printed {
				t.Errorf("printed %s, want %s", a, c.printed)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		name, text, currency string
		want                 error
	}{
		{"nothing", "", "EUR", money.ErrSyntax},
		{"white space", " ", "EUR", money.ErrSyntax},
		{"white space before it", " 1", "EUR", money.ErrSyntax},
		{"a line break after it", "1\n", "EUR", money.ErrSyntax},
		{"NUL", "1\x00", "EUR", money.ErrSyntax},
		{"a plus sign", "+1", "EUR", money.ErrSyntax},
		{"a minus sign", "-1", "EUR", money.ErrSyntax},
		{"minus zero", "-0", "EUR", money.ErrSyntax},
		{"a leading zero", "01", "EUR", money.ErrSyntax},
		{"two zeros", "00", "EUR", money.ErrSyntax},
		{"octal", "007.50", "EUR", money.ErrSyntax},
		{"a point and nothing after it", "1.", "EUR", money.ErrSyntax},
		{"a point and nothing before it", ".5", "EUR", money.ErrSyntax},
		{"only a point", ".", "EUR", money.ErrSyntax},
		{"two points", "1.2.3", "EUR", money.ErrSyntax},
		{"a decimal comma", "12,50", "EUR", money.ErrSyntax},
		{"separated thousands", "1,000.00", "EUR", money.ErrSyntax},
		{"underscores", "1_000", "EUR", money.ErrSyntax},
		{"an exponent", "1e2", "EUR", money.ErrSyntax},
		{"a capital exponent", "1E2", "EUR", money.ErrSyntax},
		{"an exponent bomb", "1e1000000000", "EUR", money.ErrSyntax},
		{"a negative one", "1e-999999999", "EUR", money.ErrSyntax},
		{"hexadecimal", "0x10", "EUR", money.ErrSyntax},
		{"a fraction", "1/2", "EUR", money.ErrSyntax},
		{"not a number", "NaN", "EUR", money.ErrSyntax},
		{"infinity", "Infinity", "EUR", money.ErrSyntax},
		{"a word", "ten", "EUR", money.ErrSyntax},
		{"the currency in it", "12 EUR", "EUR", money.ErrSyntax},
		{"its symbol in it", "€12", "EUR", money.ErrSyntax},
		{"digits of another script", "١٢", "EUR", money.ErrSyntax},
		{"full-width digits", "１２", "EUR", money.ErrSyntax},
		{"a point of another script", "1٫5", "EUR", money.ErrSyntax},
		{"bytes that are no text", "1\xff", "EUR", money.ErrSyntax},

		{"zero", "0", "EUR", money.ErrNotPositive},
		{"zero with decimals", "0.00", "EUR", money.ErrNotPositive},
		{"zero yen", "0", "JPY", money.ErrNotPositive},

		{"decimals of yen", "20.00", "JPY", money.ErrDecimals},
		{"one zero for yen", "20.0", "JPY", money.ErrDecimals},
		{"three decimals of euro", "12.345", "EUR", money.ErrDecimals},
		{"a third decimal that is zero", "12.500", "EUR", money.ErrDecimals},
		{"less than a cent", "0.001", "EUR", money.ErrDecimals},
		{"four decimals of dinar", "1.2345", "KWD", money.ErrDecimals},
		{"five decimals", "1.00000", "CLF", money.ErrDecimals},

		{"16 digits of yen", "1000000000000000", "JPY", money.ErrTooLarge},
		{"14 digits of euro", "10000000000000", "EUR", money.ErrTooLarge},
		{"13 digits of dinar", "1000000000000", "KWD", money.ErrTooLarge},
		{"12 digits with four decimals", "100000000000", "CLF", money.ErrTooLarge},
		{"2^53 + 1", "9007199254740993", "JPY", money.ErrTooLarge},
		{"more than an int64", "9223372036854775808", "JPY", money.ErrTooLong},
		{"a megabyte of digits", strings.Repeat("9", 1<<20), "EUR", money.ErrTooLong},
		{"a megabyte of decimals", "1." + strings.Repeat("0", 1<<20), "EUR", money.ErrTooLong},
		{"a megabyte of anything", strings.Repeat("e", 1<<20), "EUR", money.ErrTooLong},

		{"a currency that there is not", "1", "EURO", money.ErrCurrency},
		{"a currency in lower case", "1", "eur", money.ErrCurrency},
		{"gold", "1", "XAU", money.ErrCurrency},
		{"the amount before the currency, if both are wrong", "one", "euro", money.ErrSyntax},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := money.Parse(c.text, c.currency)
			if !errors.Is(err, c.want) || a != (money.Amount{}) {
				t.Errorf("got %d %s, %v; want %v", a.Minor, a.Currency, err, c.want)
			}
		})
	}
}

// "Costs nothing" is a promise, too: a text that no amount is as long as is not read, whatever is in it.
func TestParseOfAnythingLongAllocatesNothing(t *testing.T) {
	for _, text := range []string{strings.Repeat("9", 1<<20), "1e" + strings.Repeat("9", 1<<20), "1." + strings.Repeat("0", 1<<20)} {
		if n := testing.AllocsPerRun(10, func() {
			if _, err := money.Parse(text, "EUR"); err == nil {
				t.Error("accepted")
			}
		}); n != 0 {
			t.Errorf("%.10s…: %v allocations", text, n)
		}
	}
}

func TestFromMinor(t *testing.T) {
	for _, c := range []struct {
		name     string
		minor    int64
		currency string
		printed  string
		want     error
	}{
		{"reads yen", 2000, "JPY", "2000", nil},
		{"reads cents", 5, "EUR", "0.05", nil},
		{"reads fils", 92000, "KWD", "92.000", nil},
		{"reads zero, because nothing may remain", 0, "EUR", "0.00", nil},
		{"reads the largest", money.MaxMinor, "CLF", "99999999999.9999", nil},
		{"refuses more", money.MaxMinor + 1, "EUR", "", money.ErrTooLarge},
		{"refuses the largest integer", math.MaxInt64, "EUR", "", money.ErrTooLarge},
		{"refuses less than zero", -1, "EUR", "", money.ErrNotPositive},
		{"refuses an unknown currency", 1, "DEM", "", money.ErrCurrency},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := money.FromMinor(c.minor, c.currency)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil && (a.Minor != c.minor || a.String() != c.printed) {
				t.Errorf("got %d, printed %s; want %s", a.Minor, a, c.printed)
			}
		})
	}
}

func TestStringOfADifference(t *testing.T) {
	euro, err := money.ParseCurrency("EUR")
	if err != nil {
		t.Fatal(err)
	}
	for minor, want := range map[int64]string{
		-1: "-0.01", -1250: "-12.50", math.MinInt64: "-92233720368547758.08", math.MaxInt64: "92233720368547758.07",
	} {
		if got := (money.Amount{Minor: minor, Currency: euro}).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
