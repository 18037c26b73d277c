package kernel

import (
	"testing"

	"loam/abi/linux"
	"loam/kernel/thread"
)

// Helpers for tests of single behaviours of a core. A test plays the program: it makes calls on a CPU, lets time pass, and
// looks at the thread that the core resumes.

// newUsers returns the program of a machine as each of its CPUs sees it. The first CPU executes.
func newUsers(t *testing.T, cpus int) []user {
	m := newMachine(t, cpus, 1)
	t.Cleanup(m.check)
	var all []user
	for _, p := range m.cpus {
		all = append(all, user{p, t})
	}
	return all
}

// on makes the CPU of u execute.
func (u user) on() user {
	executing = u.modelCPU
	return u
}

// kernel returns the core.
func (u user) kernel() *core { return u.machine.core }

// now returns the time of the core's clock.
func (u user) now() int64 { return int64(u.kernel().clock.At(u.machine.counter())) }

// thread returns the record of a thread.
func (u user) thread(id thread.ID) *thread.Thread { return u.kernel().threads.At(id) }

// result returns the value that the current thread's call returns.
func (u user) result() int64 { return int64(frameOf(u.page()).AX) }

// pass lets time pass.
func (u user) pass(nanos uint64) { u.machine.ticks += nanos }

// idles lets the timer of an idle CPU expire until a thread runs.
func (u user) idles() {
	u.t.Helper()
	const most = 1000
	for range most {
		if u.cpu.current != thread.None {
			return
		}
		u.pass(max(u.timer, u.machine.ticks) - u.machine.ticks)
		u.step()
	}
	u.t.Fatal("the CPU stays idle")
}

// interrupt makes the CPU serve an interrupt.
func (u user) interrupt(vector uint64) {
	u.raise(vector)
	u.step()
}

// timespec stores a struct timespec, or a struct timeval.
func (u user) timespec(addr uint64, seconds int64, part int64) uint64 {
	u.t.Helper()
	u.write(addr, uint64(seconds))
	u.write(addr+8, uint64(part))
	return addr
}

// waiters makes n threads wait for the futex at addr, whose value is 0. It returns them in the order in which they began to
// wait. Another thread continues.
func (u user) waiters(n int, addr uint64) (ids []thread.ID) {
	u.t.Helper()
	for range n {
		next := u.clone()
		ids = append(ids, u.cpu.current)
		u.call(linux.SYS_FUTEX, addr, futexWait, 0, 0)
		u.current(next)
	}
	return ids
}

// yields calls sched_yield(2) n times and returns the threads that then run.
func (u user) yields(n int) (ids []thread.ID) {
	for range n {
		u.call(linux.SYS_SCHED_YIELD)
		ids = append(ids, u.cpu.current)
	}
	return ids
}

// ends checks that the function do ends the machine, and returns its exit status.
func (m *machine) ends(do func()) (status uint32) {
	m.t.Helper()
	defer func() {
		if err := recover(); err != (machineEnds{}) {
			m.t.Helper()
			m.t.Errorf("the machine does not end (%v)", err)
		}
		status = m.status
	}()
	do()
	return 0
}

// emulated makes the core believe that its machine is emulated.
func emulated(t *testing.T) {
	Emulated = true
	t.Cleanup(func() { Emulated, Held = false, 0 })
}

// exhaust takes all free pages, until the test ends.
func (u user) exhaust() {
	k, taken := u.kernel(), []uint64(nil)
	for {
		pa, ok := k.pages.Take()
		if !ok {
			break
		}
		taken = append(taken, pa)
	}
	u.t.Cleanup(func() {
		for _, pa := range taken {
			k.pages.Free(pa)
		}
	})
}
