package task

import (
	"sync"
	"time"

	"loam/abi/linux"
	"loam/task/signal"
)

// alarm is the ITIMER_REAL of a process. Its lock is a leaf.
type alarm struct {
	mu       sync.Mutex
	timer    *time.Timer
	at       time.Time // time of the next expiration; zero: none
	interval time.Duration
}

// set starts the timer, or stops it if first is 0. It returns the time that was left, and the interval.
func (i *alarm) set(p *Process, first, interval time.Duration) (left, old time.Duration) {
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
		i.timer = time.AfterFunc(first, func() { i.ring(p) })
	}
	return left, old
}

// left returns the time to the next expiration, at least a microsecond, and the interval. The caller holds mu.
func (i *alarm) left() (left, interval time.Duration) {
	if i.at.IsZero() {
		return 0, i.interval
	}
	return max(time.Until(i.at), time.Microsecond), i.interval
}

// ring sends SIGALRM.
func (i *alarm) ring(p *Process) {
	i.mu.Lock()
	i.at = time.Time{}
	if i.interval > 0 && i.timer != nil {
		i.at = time.Now().Add(i.interval)
		i.timer.Reset(i.interval)
	}
	i.mu.Unlock()
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	p.send(nil, signal.Info{Signal: linux.SIGALRM, Code: signal.CodeKernel})
}

func (i *alarm) stop() { i.set(nil, 0, 0) }
