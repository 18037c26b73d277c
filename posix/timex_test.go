package posix

import (
	"testing"
	"time"

	"loam/abi/linux"
)

// adjtimex(2) describes an unsynchronized clock, and changes nothing.
func TestAdjtimex(t *testing.T) {
	p := New(Options{})
	for _, c := range []struct {
		clock int
		modes uint32
		state int
		errno Errno
	}{
		{0, 0, linux.TIME_ERROR, 0},
		{0, 0xa001, linux.TIME_ERROR, 0}, // ADJ_OFFSET_SS_READ
		{0, 0x8001, -1, linux.EPERM},
		{0, 0x8000, -1, linux.EINVAL},
		{0, 0x0002, -1, linux.EPERM},
		{1, 0, -1, linux.EOPNOTSUPP}, // the clock CLOCK_MONOTONIC cannot be adjusted
		{12, 0, -1, linux.EINVAL},
		{-1, 0, -1, linux.EOPNOTSUPP},
		{-5, 0, -1, linux.EINVAL},
	} {
		tx := linux.Timex{Modes: c.modes, Offset: 7}
		state, errno := p.ClockAdjtime(c.clock, &tx)
		if state != c.state || errno != c.errno {
			t.Errorf("clock %d, modes %#x: %d, %v", c.clock, c.modes, state, errno)
		}
		if errno != 0 {
			continue
		}
		told := time.Unix(tx.Time.Sec, tx.Time.Usec*1000)
		if tx.Offset != 0 || tx.Status != linux.STA_UNSYNC || tx.Tick != 10000 || time.Since(told).Abs() > time.Minute {
			t.Errorf("%+v", tx)
		}
	}
}
