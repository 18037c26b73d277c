package socket

import (
	"encoding/binary"
	"time"

	"loam/abi/linux"
)

// Encoding of the values of socket options, and types of options that several address families use.

// OptionName identifies an option by its level and name.
type OptionName struct{ Level, Name int }

// IntOption is a socket option whose value is an int and which is stored in a T.
type IntOption[T any] struct {
	Get func(*T) int
	Set func(*T, int) linux.Errno
}

// Flag returns a boolean option. Every value except 0 turns it on.
func Flag[T any](field func(*T) *bool) IntOption[T] {
	return IntOption[T]{
		func(o *T) int {
			if *field(o) {
				return 1
			}
			return 0
		},
		func(o *T, n int) linux.Errno { *field(o) = n != 0; return 0 },
	}
}

// Unless returns a boolean option that is on if the field is false.
func Unless[T any](field func(*T) *bool) IntOption[T] {
	o := Flag(field)
	return IntOption[T]{
		func(t *T) int { return 1 - o.Get(t) },
		func(t *T, n int) linux.Errno { *field(t) = n == 0; return 0 },
	}
}

// Truth returns a boolean option that accepts 0 and 1 only.
func Truth[T any](field func(*T) *bool) IntOption[T] { return Strictly(Flag(field)) }

// Strictly restricts an option to the values 0 and 1.
func Strictly[T any](o IntOption[T]) IntOption[T] {
	set := o.Set
	o.Set = func(t *T, n int) linux.Errno {
		if n != 0 && n != 1 {
			return linux.EINVAL
		}
		return set(t, n)
	}
	return o
}

// Duration returns an option whose value is a number of units between least and most,
// inclusive. If the field is 0, the option reads as fallback.
func Duration[T any](field func(*T) *time.Duration, unit time.Duration, least, most int, fallback time.Duration) IntOption[T] {
	return IntOption[T]{
		func(o *T) int {
			if d := *field(o); d != 0 {
				return int(d / unit)
			}
			return int(fallback / unit)
		},
		func(o *T, n int) linux.Errno {
			if n < least || n > most {
				return linux.EINVAL
			}
			*field(o) = time.Duration(n) * unit
			return 0
		},
	}
}

// Count returns an option with values from 1 to 127. If the field is 0, it reads as fallback.
func Count[T any](field func(*T) *int, fallback int) IntOption[T] {
	return IntOption[T]{
		func(o *T) int {
			if n := *field(o); n != 0 {
				return n
			}
			return fallback
		},
		func(o *T, n int) linux.Errno {
			if n < 1 || n > 127 {
				return linux.EINVAL
			}
			*field(o) = n
			return 0
		},
	}
}

// Octet returns an option with values between least and 255, inclusive. If the field is
// 0, the option reads as fallback; setting -1 stores 0 in the field.
func Octet[T any](field func(*T) *uint8, least, fallback int) IntOption[T] {
	return IntOption[T]{
		func(o *T) int {
			if n := int(*field(o)); n != 0 {
				return n
			}
			return fallback
		},
		func(o *T, n int) linux.Errno {
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

// LowByte returns an option that stores only the lower 8 bits of a value.
func LowByte[T any](field func(*T) *uint8) IntOption[T] {
	return IntOption[T]{
		func(o *T) int { return int(*field(o)) },
		func(o *T, n int) linux.Errno { *field(o) = uint8(n); return 0 },
	}
}

// Buffer returns an option for a buffer size. As on Linux, setting it stores twice the given value, within bounds. If the
// field is 0, it reads as fallback.
func Buffer[T any](field func(*T) *int, fallback int) IntOption[T] {
	return IntOption[T]{
		func(o *T) int {
			if n := *field(o); n != 0 {
				return n
			}
			return fallback
		},
		func(o *T, n int) linux.Errno { *field(o) = max(4608, min(2*n, MaxBuffer)); return 0 },
	}
}

// IntValue encodes an option value of type int.
func IntValue(n int) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(n)) }

func BoolValue(on bool) []byte {
	if on {
		return IntValue(1)
	}
	return IntValue(0)
}

// TimeValue encodes a struct timeval.
func TimeValue(d time.Duration) []byte {
	b := binary.NativeEndian.AppendUint64(nil, uint64(d/time.Second))
	return binary.NativeEndian.AppendUint64(b, uint64(d%time.Second/time.Microsecond))
}

// Linger is the value of SO_LINGER, a struct linger.
type Linger struct {
	On      bool
	Seconds uint32
}

// Set decodes a struct linger. A value that is off does not change the seconds. Errors: EINVAL.
func (l *Linger) Set(value []byte) linux.Errno {
	const secondsAt = 4
	if len(value) < linux.SizeofLinger {
		return linux.EINVAL
	}
	if l.On = binary.NativeEndian.Uint32(value) != 0; l.On {
		l.Seconds = binary.NativeEndian.Uint32(value[secondsAt:])
	}
	return 0
}

// Value encodes l as a struct linger.
func (l *Linger) Value() []byte { return binary.NativeEndian.AppendUint32(BoolValue(l.On), l.Seconds) }

func ParseInt(b []byte) (int, linux.Errno) {
	if len(b) < 4 {
		return 0, linux.EINVAL
	}
	return int(int32(binary.NativeEndian.Uint32(b))), 0
}

func parseTime(b []byte) (time.Duration, linux.Errno) {
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
		return 0, 0 // the time exceeds every practical wait, so there is no timeout
	}
	return time.Duration(sec)*time.Second + time.Duration(usec)*time.Microsecond, 0
}

// MaxBuffer is the largest buffer size of a socket, in bytes.
const MaxBuffer = 64 << 20
