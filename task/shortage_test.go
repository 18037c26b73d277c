package task

import (
	"sync/atomic"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/task/shortage"
)

// runShort is like run, on a machine whose heap needs memory when the flag is set. free returns the number of free pages, of 80
// in the reserve.
func runShort(t *testing.T, short *atomic.Bool, free func(s *System) int64, programs ...func(u *user)) {
	runIn(t, func(w *world) func() {
		m := shortage.Memory{Short: short, Free: func() (int64, int64) { return free(w.system), 80 }}
		w.system.guard, w.system.short = shortage.New(m, w.system.cache.Free, w.system.candidates, w.system.account.Total)
		return func() {}
	}, programs...)
}

// While the kernel's heap is short, a call waits until the process with the largest part of it has ended.
func TestHeapIsShort(t *testing.T) {
	var short atomic.Bool
	runShort(t, &short, func(s *System) int64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return 100 - 50*int64(len(s.processes)-1)
	}, func(u *user) {
		child := u.fork(1)
		is(t, "sleep", u.call(linux.SYS_NANOSLEEP, second(u, dataAt+64), 0), 0)
		short.Store(true)
		is(t, "a call", u.call(linux.SYS_GETPPID), 1)
		is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), dataAt, linux.WNOHANG, 0), child)
		is(t, "status", int64(u.load32(dataAt)), linux.SIGKILL)
		exit(u, 0)
	}, func(u *user) {
		for range 500 {
			u.call(linux.SYS_PIPE2, dataAt, 0)
		}
		u.call(linux.SYS_PAUSE)
		t.Error("the child is alive")
	})
	if short.Load() {
		t.Error("the heap is still short")
	}
}

// A thread that waits because the kernel's heap is short handles a signal, and makes its call again.
func TestSignalWhileHeapIsShort(t *testing.T) {
	var short atomic.Bool
	var in chan struct{}
	handled := time.Duration(0)
	began := time.Time{}
	runShort(t, &short, func(*System) int64 {
		if in != nil {
			close(in)
			in = nil
			time.Sleep(3 * time.Second)
		}
		return 100
	}, func(u *user) {
		in = make(chan struct{})
		wait := in
		install(u, linux.SIGALRM, 1, 0)
		u.fork(2)
		u.call(linux.SYS_ALARM, 2)
		began = time.Now()
		<-wait
		is(t, "a call", u.call(linux.SYS_GETPPID), 1)
		if d := time.Since(began); d < 3*time.Second || handled != 2*time.Second {
			t.Errorf("the call lasted %v, and the signal was handled after %v", d, handled)
		}
		exit(u, 0)
	}, func(u *user) {
		handled = time.Since(began)
	}, func(u *user) {
		u.call(linux.SYS_NANOSLEEP, second(u, dataAt+64), 0)
		short.Store(true)
		u.call(linux.SYS_GETPID)
		u.call(linux.SYS_PAUSE)
	})
}
