// Package money holds amounts exactly: a whole number of the currency's minor units (cents, yen, fils), and the decimal text that
// people and programs exchange, which says the same without a float in between.
//
//	money.Parse("12.5", "EUR")   1250 minor units
//	money.Parse("12", "JPY")       12, because a yen has no minor unit of its own
//	money.Parse("1.500", "KWD")  1500
//
// It refuses what could mean two things, or cost something to find out: signs, exponents, leading zeros, white space, more
// decimals than the currency has (also zeros: whoever writes "12.500" may mean another currency), amounts beyond 15 digits
// in minor units, and codes that are not money, such as gold and "no currency".
//
// The errors of this package are written for whoever sent the text: each can be shown beside the member that it is about.
package money
