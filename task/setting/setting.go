// Package setting implements the files of /proc/sys that root may write (sysctl(8)). setting.go has the types of such files, number.go the
// format of numbers, and list.go the files. Settings that have no effect on Loam are in task/procfs, and cannot be written.
package setting

import (
	"fmt"
	"strings"

	"loam/abi/linux"
)

// Setting is a file of /proc/sys that root may write. Set is called with the bytes of a write and their offset in the file, and returns the
// number of bytes that it has used. As on Linux, a write of a number at another offset than 0 succeeds and has no effect.
type Setting struct {
	Text func() string
	Set  func(text string, offset int64) (int, error)
}

// Integer returns a setting whose value is an int from least to most. A write of several numbers uses the first one. Errors of a write:
// EINVAL.
func Integer(least, most int64, get func() int64, set func(int64)) Setting {
	return Setting{
		Text: func() string { return fmt.Sprintln(get()) },
		Set: func(text string, offset int64) (int, error) {
			if offset != 0 {
				return len(text), nil
			}
			n, rest, ok := number(skipSpace(text[:min(len(text), maxText)]))
			if !ok || n < least || n > most {
				return 0, linux.EINVAL
			}
			set(n)
			return len(text) - len(skipSpace(rest)), nil
		},
	}
}

// Long is like Integer, for an unsigned long: a minus sign is an error, also before 0.
func Long(most int64, get func() int64, set func(int64)) Setting {
	s := Integer(0, most, get, set)
	return Setting{s.Text, func(text string, offset int64) (int, error) {
		if offset == 0 && strings.HasPrefix(skipSpace(text), "-") {
			return 0, linux.EINVAL
		}
		return s.Set(text, offset)
	}}
}

// Unsigned is like Long, for an unsigned int: a write of several numbers uses all bytes.
func Unsigned(most int64, get func() int64, set func(int64)) Setting {
	s := Long(most, get, set)
	return Setting{s.Text, func(text string, offset int64) (int, error) {
		n, err := s.Set(text, offset)
		if err == nil {
			n = len(text)
		}
		return n, err
	}}
}

// Name returns a setting that is a text of at most most bytes. A write sets the text before the first end of line; the rest of a longer
// text is ignored. A write at an offset keeps the bytes before it, and has no effect if the offset is behind the end.
func Name(most int, get func() string, set func(string)) Setting {
	return Setting{
		Text: func() string { return get() + "\n" },
		Set: func(text string, offset int64) (int, error) {
			old, n := get(), len(text)
			if offset > int64(len(old)) {
				return n, nil
			}
			if end := strings.IndexAny(text, "\n\x00"); end >= 0 {
				text = text[:end]
			}
			text = old[:offset] + text
			set(text[:min(len(text), most)])
			return n, nil
		},
	}
}
