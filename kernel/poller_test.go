package kernel

import (
	"testing"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/kernel/thread"
)

// Deferred wakes for the poller. Thread 1 waits in the poller, and runs again when an interrupt has arrived.

// debtor starts a machine with CPUs, whose second thread waits in CallStandIn. An interrupt has ended the poller's wait, which had a timeout
// in nanoseconds, and the runtime has deferred a wake. debtor returns the first CPU, the stand-in, and the vector of the interrupt.
func debtor(t *testing.T, cpus int, timeout int64) (all []user, standIn thread.ID, vector uint64) {
	t.Cleanup(func() { Rung, Debt, Emulated = 0, 0, false })
	all = newUsers(t, cpus)
	u := all[0].on()
	first := u.cpu.current
	standIn = u.clone()
	vector = amd64.VectorDevice + uint64(u.call(CallMessage))
	for u.cpu.current != standIn {
		u.yields(1)
	}
	u.call(CallStandIn)
	u.current(first)
	u.call(CallPoll, uint64(timeout))
	u.current(thread.None)
	if Debt != thread.Settled {
		t.Fatalf("the debt is %d while a thread is in the poller", Debt)
	}
	u.raise(vector)
	u.step()
	u.resumed(first, 0)
	Rung = 0
	if !Debt.Defer() {
		t.Fatal("no wake can be deferred")
	}
	return all, standIn, vector
}

// runs steps a CPU that is idle until it runs a thread.
func (u user) runs(id thread.ID) {
	u.t.Helper()
	u.on().step()
	u.current(id)
}

// While a wake is deferred, an interrupt makes the stand-in run on an idle CPU at once.
func TestDebtPaidByInterrupt(t *testing.T) {
	all, standIn, vector := debtor(t, 2, -1)
	u := all[0]
	u.raise(vector)
	u.step()
	u.current(1)
	all[1].runs(standIn)
	if Debt != thread.Settled {
		t.Errorf("the debt is %d", Debt)
	}
	u.on().raise(vector)
	u.step()
	if u.kernel().poller.due || u.kernel().threads.HasReady() {
		t.Error("an interrupt without a debt makes a wake")
	}
}

// The stand-in runs when the poller's time ends, and no wake is deferred until a thread has called the poller.
func TestDebtPaidByTimer(t *testing.T) {
	const ms = int64(1e6)
	all, standIn, _ := debtor(t, 2, 3*ms)
	u := all[0]
	if left := u.machine.earliest() - u.machine.ticks; int64(left) > 3*ms {
		t.Fatalf("the first timer expires in %d ns", left)
	}
	u.pass(uint64(3*ms + 1))
	u.interrupt(amd64.VectorTimer)
	u.current(1)
	all[1].runs(standIn)
	if Debt.Defer() {
		t.Error("a wake is deferred after the poller's time has ended")
	}
	Rung = 1 // the call returns at once
	all[0].on().want(0, CallPoll, ^uint64(0))
	if Debt != thread.Settled {
		t.Errorf("the debt is %d after a call of the poller", Debt)
	}
}

// A write to wakeFD needs a thread in the poller, for a timer that another thread has set. It pays the debt.
func TestDebtPaidByBreak(t *testing.T) {
	all, standIn, _ := debtor(t, 2, -1)
	u := all[0].on()
	u.want(8, linux.SYS_WRITE, wakeFD, u.memory(1, protRead|protWrite), 8)
	u.current(1)
	all[1].runs(standIn)
	if Debt != thread.Settled {
		t.Errorf("the debt is %d", Debt)
	}
	all[0].on().want(1, CallPoll, ^uint64(0))
}

// All CPUs are busy when a deferred wake becomes due, because the runtime has more Ps than the machine has CPUs. The stand-in runs
// when the quantum of a thread ends.
func TestDebtOfBusyCPUs(t *testing.T) {
	all, standIn, vector := debtor(t, 2, -1)
	u := all[0].on()
	other := u.clone()
	all[1].runs(other)
	u.on().raise(vector)
	u.step()
	u.current(1)
	u.pass(quantum)
	u.interrupt(amd64.VectorTimer)
	u.current(standIn)
}

// The thread that deferred a wake calls the poller again: the stand-in does not run, also if an interrupt has arrived before and the CPU
// keeps its work for itself (emulation.go).
func TestDebtSettled(t *testing.T) {
	all, _, vector := debtor(t, 2, -1)
	Emulated = true
	u := all[0]
	u.raise(vector)
	u.step()
	u.current(1)
	if u.kernel().threads.HasReady() {
		t.Error("the stand-in is ready, and the CPU was idle a moment ago")
	}
	u.want(0, CallPoll, ^uint64(0)) // a bit is set
	Rung = 0
	u.call(CallPoll, ^uint64(0))
	u.current(thread.None)
	if u.kernel().poller.due || Debt != thread.Settled {
		t.Errorf("the debt is %d, a wake is due: %v", Debt, u.kernel().poller.due)
	}
}

// A CPU that becomes idle runs the stand-in, if a wake is due. A call of the stand-in that comes after the wake returns at once.
func TestDebtOfIdleCPU(t *testing.T) {
	all, standIn, vector := debtor(t, 1, -1)
	u := all[0]
	u.raise(vector)
	u.step()
	u.current(1)
	Rung = 0
	at := u.memory(1, protRead|protWrite)
	u.timespec(at, 1, 0)
	u.call(linux.SYS_NANOSLEEP, at)
	u.resumed(standIn, 0)
	Debt.Defer()
	u.raise(vector)
	u.step()
	u.kernel().callStandIn()
	u.want(0, CallStandIn)
}
