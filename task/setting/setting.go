// Package setting implements the files of /proc/sys that root may write (sysctl(8)). setting.go has the types of such files, number.go the
// format of numbers, and list.go the files. Settings that have no effect on Loam are in task/procfs, and cannot be written.
package setting

import (
	"fmt"
	"slices"
	"strings"

	"loam/abi/linux"
)

// Setting is a file of /proc/sys that root may write. Set is called with the bytes of a write and their offset in the file, and returns the
// number of bytes that it has used. As on Linux, a write of numbers at another offset than 0 succeeds and has no effect.
type Setting struct {
	Text func() string
	Set  func(text string, offset int64) (int, error)
}

// Integer returns a setting whose value is an int from least to most. Errors of a write: EINVAL.
func Integer(least, most int64, get func() int64, set func(int64)) Setting {
	return Integers(least, most, 1, func() []int64 { return []int64{get()} }, func(values []int64) error {
		set(values[0])
		return nil
	})
}

// Integers returns a setting with a number of values from least to most. A write may have fewer values: the others keep theirs. A write
// with more values uses only the bytes before them. set may return an error, which is returned to the writer. Errors of a write: EINVAL.
func Integers(least, most int64, count int, get func() []int64, set func([]int64) error) Setting {
	return Setting{
		Text: func() string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(get()), " ", "\t"), "[]") + "\n" },
		Set: func(text string, offset int64) (int, error) {
			if offset != 0 {
				return len(text), nil
			}
			rest, values := text[:min(len(text), maxText)], slices.Clone(get())
			for i := range count {
				if rest = skipSpace(rest); rest == "" && i > 0 {
					break
				}
				n, after, ok := number(rest)
				if !ok || n < least || n > most {
					return 0, linux.EINVAL
				}
				values[i], rest = n, after
			}
			rest = skipSpace(rest)
			return len(text) - len(rest), set(values)
		},
	}
}

// Unsigned is like Integer, for an unsigned int: a write of several numbers uses all bytes.
func Unsigned(least, most int64, get func() int64, set func(int64)) Setting {
	s := Integer(least, most, get, set)
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
