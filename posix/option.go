package posix

import (
	"encoding/binary"
	"time"

	"loam/abi/linux"
)

// Values of socket options, and the kinds of options that several families share.

// optionName identifies an option by its level and name.
type optionName struct{ level, name int }

// intOption is an option of T whose value is an int.
type intOption[T any] struct {
	get func(*T) int
	set func(*T, int) Errno
}

// flag returns a boolean option; every value but 0 sets it.
func flag[T any](field func(*T) *bool) intOption[T] {
	return intOption[T]{
		func(o *T) int {
			if *field(o) {
				return 1
			}
			return 0
		},
		func(o *T, n int) Errno { *field(o) = n != 0; return 0 },
	}
}

// unless returns a boolean option that is on while the field is false.
func unless[T any](field func(*T) *bool) intOption[T] {
	o := flag(field)
	return intOption[T]{
		func(t *T) int { return 1 - o.get(t) },
		func(t *T, n int) Errno { *field(t) = n == 0; return 0 },
	}
}

// truth returns a boolean option that accepts 0 and 1 only.
func truth[T any](field func(*T) *bool) intOption[T] { return strictly(flag(field)) }

// strictly restricts an option to the values 0 and 1.
func strictly[T any](o intOption[T]) intOption[T] {
	set := o.set
	o.set = func(t *T, n int) Errno {
		if n != 0 && n != 1 {
			return linux.EINVAL
		}
		return set(t, n)
	}
	return o
}

// duration returns an option that counts units of time, from least to most. Unset, it reads as
// fallback.
func duration[T any](field func(*T) *time.Duration, unit time.Duration, least, most int, fallback time.Duration) intOption[T] {
	return intOption[T]{
		func(o *T) int {
			if d := *field(o); d != 0 {
				return int(d / unit)
			}
			return int(fallback / unit)
		},
		func(o *T, n int) Errno {
			if n < least || n > most {
				return linux.EINVAL
			}
			*field(o) = time.Duration(n) * unit
			return 0
		},
	}
}

// count returns an option with a range of 1 to 127. Unset, it reads as fallback.
func count[T any](field func(*T) *int, fallback int) intOption[T] {
	return intOption[T]{
		func(o *T) int {
			if n := *field(o); n != 0 {
				return n
			}
			return fallback
		},
		func(o *T, n int) Errno {
			if n < 1 || n > 127 {
				return linux.EINVAL
			}
			*field(o) = n
			return 0
		},
	}
}

// octet returns an option with a range of least to 255. The field's zero value reads as fallback, and
// the option value -1 resets the field to zero.
func octet[T any](field func(*T) *uint8, least, fallback int) intOption[T] {
	return intOption[T]{
		func(o *T) int {
			if n := int(*field(o)); n != 0 {
				return n
			}
			return fallback
		},
		func(o *T, n int) Errno {
			if n == -1 {
				n = 0
			} else if n < least || n > 255 {
				return linux.EINVAL
			}
			*field(o) = uint8(n)
			return 0
		},
	}
}

// buffer returns a buffer size. As on Linux, setting it stores twice the given value, within bounds.
// Unset, it reads as fallback.
func buffer[T any](field func(*T) *int, fallback int) intOption[T] {
	return intOption[T]{
		func(o *T) int {
			if n := *field(o); n != 0 {
				return n
			}
			return fallback
		},
		func(o *T, n int) Errno { *field(o) = max(4608, min(2*n, maxInetBuffer)); return 0 },
	}
}

// intValue encodes an option value of type int.
func intValue(n int) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(n)) }

func boolValue(on bool) []byte {
	if on {
		return intValue(1)
	}
	return intValue(0)
}

// timeValue encodes a struct timeval.
func timeValue(d time.Duration) []byte {
	b := binary.NativeEndian.AppendUint64(nil, uint64(d/time.Second))
	return binary.NativeEndian.AppendUint64(b, uint64(d%time.Second/time.Microsecond))
}

func parseInt(b []byte) (int, Errno) {
	if len(b) < 4 {
		return 0, linux.EINVAL
	}
	return int(int32(binary.NativeEndian.Uint32(b))), 0
}

func parseTime(b []byte) (time.Duration, Errno) {
	if len(b) < 16 {
		return 0, linux.EINVAL
	}
	sec, usec := int64(binary.NativeEndian.Uint64(b)), int64(binary.NativeEndian.Uint64(b[8:]))
	switch {
	case usec < 0 || usec >= 1e6:
		return 0, linux.EDOM
	case sec < 0:
		return 0, 0
	case sec > 1<<31:
		return 0, 0 // in effect, no timeout
	}
	return time.Duration(sec)*time.Second + time.Duration(usec)*time.Microsecond, 0
}
