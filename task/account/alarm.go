package account

import (
	"sync"
	"time"
)

// Alarm is the timer ITIMER_REAL of a process. No other lock is acquired while its lock is held.
type Alarm struct {
	mu       sync.Mutex
	timer    *time.Timer
	at       time.Time // time of the next expiration; zero: the timer is stopped
	interval time.Duration
}

// Set starts the timer, which calls ring at each expiration, or stops it if first is 0. It returns the remaining time
// and the interval of the former setting.
func (i *Alarm) Set(first, interval time.Duration, ring func()) (left, old time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	left, old = i.left()
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
	i.at, i.interval = time.Time{}, interval
	if first > 0 {
		i.at = time.Now().Add(first)
		i.timer = time.AfterFunc(first, func() { i.expire(ring) })
	}
	return left, old
}

// left returns the time to the next expiration, at least a microsecond, and the interval. The caller holds mu.
func (i *Alarm) left() (left, interval time.Duration) {
	if i.at.IsZero() {
		return 0, i.interval
	}
	return max(time.Until(i.at), time.Microsecond), i.interval
}

// expire is called when the time has come: it restarts a periodic timer, and calls ring.
func (i *Alarm) expire(ring func()) {
	i.mu.Lock()
	i.at = time.Time{}
	if i.interval > 0 && i.timer != nil {
		i.at = time.Now().Add(i.interval)
		i.timer.Reset(i.interval)
	}
	i.mu.Unlock()
	ring()
}

// Stop stops the timer.
func (i *Alarm) Stop() { i.Set(0, 0, nil) }

// Left returns the time to the next expiration, at least a microsecond, and the interval.
func (i *Alarm) Left() (left, interval time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.left()
}
