package task

import (
	"testing"

	"loam/abi/linux"
)

// A long transfer of a call asks the caller's memory whether the thread ends: see call.Ending.
func TestEnding(t *testing.T) {
	var s *System
	status := runIn(t, func(w *world) func() {
		s = w.system
		return func() {}
	}, func(u *user) {
		var m memory
		s.mu.Lock()
		for _, m.t = range s.tasks { // there is only one
		}
		s.mu.Unlock()
		if m.Ending() {
			t.Error("the thread ends before the signal")
		}
		s.mu.Lock()
		m.t.process.end(linux.SIGKILL)
		s.mu.Unlock()
		if !m.Ending() || !m.t.interrupt.Raised() {
			t.Error("the thread does not end after the signal")
		}
		u.call(linux.SYS_GETPID) // does not return
	})
	is(t, "status", int64(status), linux.SIGKILL)
}
