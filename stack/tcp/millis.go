package tcp

import "time"

// millis is a time, or a duration, in milliseconds: half the size of a Time, for
// what need not be exact. A machine may hold very many idle connections. Times
// wrap after 49 days, durations end there.
type millis uint32

// at is the time now.
func at(now Time) millis { return millis(now / time.Millisecond) }

// since is the time from m to now, of less than 49 days.
func (m millis) since(now Time) Time { return (at(now) - m).duration() }

// lasting is a duration, at least a millisecond if it is not zero.
func lasting(d time.Duration) millis {
	return millis(min(max(d, 0)+time.Millisecond-1, time.Millisecond*(1<<32-1)) / time.Millisecond)
}

func (m millis) duration() Time { return Time(m) * time.Millisecond }
