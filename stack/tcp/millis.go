package tcp

import "time"

// millis is a time or a duration in milliseconds. It takes half the space of a Time, for values that need not
// be exact, because a machine may hold very many idle connections. Times wrap around after 49 days; durations
// are limited to 49 days.
type millis uint32

// at converts a time to milliseconds.
func at(now Time) millis { return millis(now / time.Millisecond) }

// since returns the time from m to now, which must be less than 49 days.
func (m millis) since(now Time) Time { return (at(now) - m).duration() }

// lasting converts a duration to milliseconds, rounded up and limited to 49 days. Negative means 0.
func lasting(d time.Duration) millis {
	return millis(min(max(d, 0)+time.Millisecond-1, time.Millisecond*(1<<32-1)) / time.Millisecond)
}

func (m millis) duration() Time { return Time(m) * time.Millisecond }
