package posix

import (
	"syscall"
	"testing"
	"time"
)

// adjtimex(2) tells of a clock that nobody disciplines, and changes nothing.
func TestAdjtimex(t *testing.T) {
	p := New(Options{})
	for _, c := range []struct {
		clock int
		modes uint32
		state int
		errno Errno
	}{
		{0, 0, timeError, 0},
		{0, 0xa001, timeError, 0}, // ADJ_OFFSET_SS_READ
		{0, 0x8001, -1, syscall.EPERM},
		{0, 0x8000, -1, syscall.EINVAL},
		{0, 0x0002, -1, syscall.EPERM},
		{1, 0, -1, syscall.EOPNOTSUPP}, // CLOCK_MONOTONIC
		{12, 0, -1, syscall.EINVAL},
		{-1, 0, -1, syscall.EOPNOTSUPP},
		{-5, 0, -1, syscall.EINVAL},
	} {
		tx := syscall.Timex{Modes: c.modes, Offset: 7}
		state, errno := p.ClockAdjtime(c.clock, &tx)
		if state != c.state || errno != c.errno {
			t.Errorf("clock %d, modes %#x: %d, %v", c.clock, c.modes, state, errno)
		}
		if errno != 0 {
			continue
		}
		told := time.Unix(tx.Time.Sec, tx.Time.Usec*1000)
		if tx.Offset != 0 || tx.Status != staUnsynchronized || tx.Tick != 10000 || time.Since(told).Abs() > time.Minute {
			t.Errorf("%+v", tx)
		}
	}
}
