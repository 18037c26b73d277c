// Package setting implements the files of /proc/sys that root may write (sysctl(8)). setting.go has the types of such files, and
// list.go the files. Settings that have no effect on Loam are in task/procfs, and cannot be written.
package setting

import (
	"fmt"
	"strconv"
	"strings"

	"loam/abi/linux"
)

// Setting is a file of /proc/sys that root may write.
type Setting struct {
	Text func() string
	Set  func(text string) error
}

// maxNumber is the largest size of a number in a write, in bytes, with its terminator (TMPBUFLEN of Linux).
const maxNumber = 22

// Integer returns a setting whose value is an integer from least to most. A write sets the first number of its text. As on Linux,
// the number may have the prefix 0x, or 0 for octal, and space around it; further numbers are ignored. Errors of a write: EINVAL.
func Integer(least, most int64, get func() int64, set func(int64)) Setting {
	return Setting{
		Text: func() string { return fmt.Sprintln(get()) },
		Set: func(text string) error {
			n, ok := firstNumber(text)
			if !ok || n < least || n > most {
				return linux.EINVAL
			}
			set(n)
			return nil
		},
	}
}

// firstNumber returns the number at the beginning of a text.
func firstNumber(text string) (int64, bool) {
	const space = " \t\n\v\f\r"
	text, _, _ = strings.Cut(strings.TrimLeft(text, space), "\x00")
	if end := strings.IndexAny(text, " \t\n"); end >= 0 {
		text = text[:end]
	}
	digits, base := strings.TrimPrefix(text, "-"), 10
	switch lower := strings.ToLower(digits); {
	case strings.HasPrefix(lower, "0x"):
		digits, base = digits[2:], 16
	case len(digits) > 1 && digits[0] == '0':
		base = 8
	}
	if len(text) >= maxNumber || strings.ContainsAny(digits, "+-_") {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, base, 64)
	if strings.HasPrefix(text, "-") {
		n = -n
	}
	return n, err == nil
}

// Name returns a setting that is a name of at most linux.NameMax bytes. A write sets the text before the first end of line; the rest
// of a longer name is ignored.
func Name(get func() string, set func(string)) Setting {
	return Setting{
		Text: func() string { return get() + "\n" },
		Set: func(text string) error {
			if end := strings.IndexAny(text, "\n\x00"); end >= 0 {
				text = text[:end]
			}
			set(text[:min(len(text), linux.NameMax)])
			return nil
		},
	}
}
