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
	return Checked(least, most, get, func(n int64) error { set(n); return nil })
}

// Checked is like Integer. The error of set is returned to the writer.
func Checked(least, most int64, get func() int64, set func(int64) error) Setting {
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
			return len(text) - len(skipSpace(rest)), set(n)
		},
	}
}

// Long is like Integer, for an unsigned long: a minus sign is an error, also before 0.
func Long[T int64 | uint64](most T, get func() T, set func(T)) Setting {
	return Setting{
		Text: func() string { return fmt.Sprintln(get()) },
		Set: func(text string, offset int64) (int, error) {
			if offset != 0 {
				return len(text), nil
			}
			n, negative, rest, ok := magnitude(skipSpace(text[:min(len(text), maxText)]))
			if !ok || negative || n > uint64(most) {
				return 0, linux.EINVAL
			}
			set(T(n))
			return len(text) - len(skipSpace(rest)), nil
		},
	}
}

// Integers returns a setting of several ints from least to most, separated by tabs. A write of fewer numbers changes the first ones. set is
// called with all numbers, new and old, and with the error of the first number that is wrong. It returns the error of the write.
func Integers(least, most int64, get func() []int64, set func(numbers []int64, err error) error) Setting {
	return Setting{
		Text: func() string {
			return strings.ReplaceAll(strings.Trim(fmt.Sprintln(get()), "[]\n"), " ", "\t") + "\n"
		},
		Set: func(text string, offset int64) (int, error) {
			if offset != 0 {
				return len(text), nil
			}
			numbers := get()
			rest := skipSpace(text[:min(len(text), maxText)])
			var err error = linux.EINVAL
			for i := range numbers {
				n, after, ok := number(rest)
				if ok = ok && n >= least && n <= most; !ok && (i == 0 || rest != "") {
					err = linux.EINVAL
				}
				if !ok {
					break
				}
				numbers[i], rest, err = n, skipSpace(after), nil
			}
			return len(text) - len(rest), set(numbers, err)
		},
	}
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
	return Text(most, get, func(text string) error { set(text); return nil })
}

// Text is like Name. The error of set is returned to the writer.
func Text(most int, get func() string, set func(string) error) Setting {
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
			return n, set(text[:min(len(text), most)])
		},
	}
}
