package setting

import (
	"math"
	"strconv"
	"strings"
)

// Numbers in writes to /proc/sys. As on Linux, a number may have the prefix 0x, or 0 for octal, and space around it.

const (
	maxNumber = 22   // TMPBUFLEN of Linux: a number has fewer bytes, with its terminator
	maxText   = 4095 // bytes of a write behind a page are ignored
)

func skipSpace(text string) string { return strings.TrimLeft(text, " \t\n\v\f\r") }

// number returns the number at the beginning of a text, and the text behind it.
func number(text string) (n int64, rest string, ok bool) {
	u, negative, rest, ok := magnitude(text)
	if n = int64(u); negative {
		n = -n
	}
	return n, rest, ok && u <= math.MaxInt64
}

// magnitude is like number, and returns the number without its sign.
func magnitude(text string) (n uint64, negative bool, rest string, ok bool) {
	digits := text
	if end := strings.IndexAny(text, " \t\n"); end >= 0 {
		digits = text[:end]
	}
	rest = text[len(digits):]
	if len(digits) >= maxNumber-1 {
		return 0, false, "", false
	}
	digits, negative = strings.CutPrefix(digits, "-")
	base := 10
	switch lower := strings.ToLower(digits); {
	case strings.HasPrefix(lower, "0x"):
		digits, base = digits[2:], 16
	case len(digits) > 1 && digits[0] == '0':
		base = 8
	}
	if strings.ContainsAny(digits, "+-_") {
		return 0, false, "", false
	}
	n, err := strconv.ParseUint(digits, base, 64)
	return n, negative, rest, err == nil
}
