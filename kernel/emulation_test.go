package kernel

import (
	"encoding/binary"
	"testing"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/kernel/thread"
)

// Short waits, and the state of a CPU that the processor reads.

// A sleep of a few microseconds is a loop: the CPU does not become idle, and no other thread runs. Other CPUs can use the core
// meanwhile.
func TestShortSleep(t *testing.T) {
	all := newUsers(t, 2)
	u, other := all[0].on(), all[1]
	at := u.memory(1, protRead|protWrite)
	id := u.clone()
	other.on().step()
	other.current(id)
	u.on()
	first, held := u.cpu.current, -1
	u.machine.later(500, func() {
		if held = int(u.kernel().big); held == 0 {
			other.on().want(int64(id), linux.SYS_GETTID)
			u.on()
		}
	})
	begin := u.now()
	u.timespec(at, 0, 3000)
	u.want(0, linux.SYS_NANOSLEEP, at)
	u.current(first)
	if held != 0 {
		t.Errorf("the lock is %d during the sleep, want 0", held)
	}
	if slept := u.now() - begin; slept < 3000 || slept > 20_000 {
		t.Errorf("slept %d ns, want 3000", slept)
	}
}

// The stack for interrupts is the page of the running thread, or the page of the idle loop.
func TestInterruptStack(t *testing.T) {
	u := newUser(t)
	check := func(page uintptr) {
		t.Helper()
		end := uint64(page) + pageSize
		if got := binary.LittleEndian.Uint64(u.cpu.task[amd64.TaskStacks:]); got != end || uint64(u.cpu.frameEnd) != end || u.cpu.vector != page {
			t.Errorf("the processor stores frames below %#x, want %#x", got, end)
		}
	}
	first := u.cpu.current
	check(u.thread(first).Page)
	second := u.clone()
	u.yields(1)
	check(u.thread(second).Page)
	u.call(linux.SYS_EXIT)
	check(u.thread(first).Page)
	u.call(linux.SYS_PAUSE)
	u.current(thread.None)
	check(u.cpu.idle)
}

// The earliest deadline of all threads has a timer of some CPU, whichever CPU the thread was on.
func TestOneTimerForAll(t *testing.T) {
	all := newUsers(t, 2)
	u, other := all[0].on(), all[1]
	at := u.memory(1, protRead|protWrite)
	id := u.clone()
	other.on().step()
	other.current(id)
	u.on().timespec(at, 0, 50e6)
	u.timespec(at+16, 0, 20e6)
	u.call(linux.SYS_NANOSLEEP, at)
	if left := u.machine.earliest() - u.machine.ticks; left > 51e6 {
		t.Errorf("the first timer expires in %d ns", left)
	}
	other.on().call(linux.SYS_NANOSLEEP, at+16)
	if left := u.machine.earliest() - u.machine.ticks; left > 21e6 {
		t.Errorf("the first timer expires in %d ns, with an earlier deadline", left)
	}
	for _, want := range []thread.ID{id, 1} {
		for u.cpu.current == thread.None && other.cpu.current == thread.None {
			u.pass(1e6)
			for _, x := range all {
				x.on().step()
			}
		}
		if got := max(u.cpu.current, other.cpu.current); got != want && min(u.cpu.current, other.cpu.current) != want {
			t.Errorf("thread %d wakes, want %d", got, want)
		}
		for _, x := range all {
			if x.cpu.current == id {
				x.on().call(linux.SYS_EXIT)
			}
		}
	}
}
