package show

import (
	"fmt"
	"strconv"
	"time"
)

// scaled formats a number with three digits and an SI prefix.
func scaled(n float64, unit string) string {
	prefix := ""
	for _, p := range []string{"k", "M", "G", "T"} {
		if n < 999.5 {
			break
		}
		n, prefix = n/1000, p
	}
	digits := 2
	switch {
	case prefix == "" && n == float64(int64(n)):
		digits = 0
	case n >= 99.95:
		digits = 0
	case n >= 9.995:
		digits = 1
	}
	return strconv.FormatFloat(n, 'f', digits, 64) + " " + prefix + unit
}

// Rate formats a rate in frames per second.
func Rate(pps float64) string { return scaled(pps, "pps") }

// Bits formats a rate in bits per second.
func Bits(bps float64) string { return scaled(bps, "b/s") }

// count formats a number with commas between thousands.
func count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Span formats a duration with three digits.
func Span(d time.Duration) string {
	s := d.Seconds()
	switch {
	case d == 0:
		return "0"
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case s < 999.5e-6:
		return fmt.Sprintf("%.3g µs", s*1e6)
	case s < 999.5e-3:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.4g s", s)
}

// clock formats the elapsed time in minutes and seconds.
func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%04.1f", int(d.Minutes()), d.Seconds()-60*float64(int(d.Minutes())))
}
