package kernel

import (
	"slices"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/kernel/thread"
)

// Scheduling: which thread runs on which CPU, and how CPUs wake each other.

const quarter = quantum / 4

// A thread keeps its CPU for a quantum while others are ready, and the timer ends the quantum even if the thread makes no call.
func TestQuantum(t *testing.T) {
	u := newUser(t)
	first := u.cpu.current
	u.pass(5 * quantum) // alone, a thread has no quantum
	second := u.clone()
	u.current(second) // it has waited for no time, and the first thread has run for long
	for range 3 {
		u.pass(quarter)
		u.call(linux.SYS_GETPID)
		u.current(second)
	}
	if at := int64(u.timer) - int64(u.machine.ticks); at > quarter+1000 {
		t.Errorf("the timer expires in %d ns, after the quantum", at)
	}
	u.pass(quarter)
	u.interrupt(amd64.VectorTimer)
	u.current(first)
	u.pass(quantum)
	u.interrupt(amd64.VectorTimer)
	u.current(second)
}

// sched_yield(2) lets all ready threads run in turn. A thread that is alone continues.
func TestYield(t *testing.T) {
	u := newUser(t)
	first := u.cpu.current
	u.want(0, linux.SYS_SCHED_YIELD)
	u.current(first)
	second, third := u.clone(), thread.None
	for u.cpu.current != first { // the thread has yielded before
		u.yields(1)
	}
	third = u.clone()
	got := u.yields(6)
	if want := []thread.ID{second, third, first, second, third, first}; !slices.Equal(got, want) {
		t.Errorf("threads %v, want %v", got, want)
	}
}

// A thread that ends frees its number. When the last thread ends, the CPU is idle.
func TestThreadEnds(t *testing.T) {
	u := newUser(t)
	first := u.cpu.current
	second := u.clone()
	u.call(linux.SYS_EXIT)
	u.current(second)
	if u.kernel().threads.Exists(first) {
		t.Error("the thread exists after its end")
	}
	if id := u.clone(); id != first {
		t.Errorf("the new thread is %d, want %d again", id, first)
	}
	u.call(linux.SYS_EXIT)
	u.call(linux.SYS_EXIT)
	u.current(thread.None)
	u.interrupt(amd64.VectorTimer)
	u.current(thread.None)
}

// A clone starts at the same instruction with another stack, and its call returns 0. A clone that would be a process is refused.
func TestClone(t *testing.T) {
	u := newUser(t)
	f := frameOf(u.page())
	f.IP, f.R12 = 0x5555, 12
	id := u.clone()
	child := frameOf(u.thread(id).Page)
	if child.IP != 0x5555 || child.R12 != 12 || child.AX != 0 || child.SP == f.SP {
		t.Errorf("%+v", *child)
	}
	u.fails(linux.ENOSYS, linux.SYS_CLONE, linux.CLONE_VM, f.SP)
	u.fails(linux.ENOSYS, linux.SYS_CLONE, linux.CLONE_THREAD, f.SP)
	u.fails(linux.ENOSYS, linux.SYS_CLONE, linux.CLONE_VM|linux.CLONE_THREAD, 0)
	u.fails(linux.ENOSYS, linux.SYS_FORK)
	u.fails(linux.ENOSYS, linux.SYS_VFORK)
}

// A SYSCALL instruction saves vector registers, which the new thread inherits.
func TestCloneByInstruction(t *testing.T) {
	u := newUser(t)
	registers := bytesAt(uint64(u.page()), fxsaveSize)
	for i := range registers {
		registers[i] = byte(i + 1)
	}
	f := frameOf(u.page())
	u.prepareCall(linux.SYS_CLONE, linux.CLONE_VM|linux.CLONE_THREAD, 1<<20)
	f.Vector = amd64.VectorSyscall
	u.serve()
	id := thread.ID(f.AX)
	if !u.kernel().threads.Exists(id) {
		t.Fatalf("clone returns %d", int64(f.AX))
	}
	if !slices.Equal(bytesAt(uint64(u.thread(id).Page), fxsaveSize), registers) {
		t.Error("the new thread has other vector registers")
	}
}

// Without memory for a thread, clone returns ENOMEM, and the console says what to do.
func TestNoMemoryForThread(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	u.write(at, 1)
	count := u.kernel().threads.Count()
	u.exhaust()
	u.fails(linux.ENOMEM, linux.SYS_CLONE, linux.CLONE_VM|linux.CLONE_THREAD, at+pageSize)
	if got := u.kernel().threads.Count(); got != count {
		t.Errorf("%d threads, want %d", got, count)
	}
	if !strings.Contains(string(u.machine.output), "is free; give the machine more (-m)") {
		t.Errorf("output: %s", u.machine.output)
	}
}

// Without memory for a page, the machine ends with a status of its own, and the console says what to do.
func TestOutOfMemory(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	u.exhaust()
	status := u.machine.ends(func() { u.access(at, true) })
	if status != statusOutOfMemory || !strings.Contains(string(u.machine.output), "loam: out of memory: the program uses all of the 60 MiB") {
		t.Errorf("status %d, output: %s", status, u.machine.output)
	}
	u.machine.core.big = 0 // held when the machine ended
}

// A thread that becomes ready while a CPU is idle wakes that CPU by one interrupt, and runs there.
func TestIdleCPU(t *testing.T) {
	all := newUsers(t, 3)
	u := all[0].on()
	id := u.clone()
	if u.machine.kicks != 1 || all[2].pending != [2]uint64{} {
		t.Errorf("%d interrupts for one ready thread", u.machine.kicks)
	}
	u.want(programID, linux.SYS_GETPID)
	if u.machine.kicks != 1 {
		t.Error("a CPU that has not yet woken is interrupted again")
	}
	all[1].on().step()
	all[1].current(id)
	u.on().clone()
	all[2].on().step()
	u.on().clone() // no CPU is idle
	if u.machine.kicks != 2 || !u.kernel().threads.HasReady() {
		t.Errorf("%d interrupts", u.machine.kicks)
	}
}

// A thread that asks for another CPU continues there at once. The thread that ran there becomes ready, and an idle CPU runs it.
func TestMove(t *testing.T) {
	all := newUsers(t, 3)
	u, other := all[0].on(), all[1]
	first := u.cpu.current
	u.want(0, CallMove, 0)
	u.want(0, CallMove, 99)
	u.want(0, CallWhere)
	second := u.clone()
	other.on().step()
	other.current(second)
	u.on().want(programID, linux.SYS_GETPID)
	u.call(CallMove, 1)
	u.current(thread.None) // the CPU is idle, and takes no thread that was moved to another
	u.step()
	u.current(thread.None)
	all[2].on().step()
	all[2].current(thread.None)
	other.on().step()
	other.resumed(first, 0)
	other.want(1, CallWhere)
	u.on().step()
	u.current(second)
}

// If two threads ask for a CPU before it enters the kernel, one continues there. The other becomes ready for all CPUs, and the CPU's
// timer ends the quantum of the first.
func TestMoveOfTwo(t *testing.T) {
	all := newUsers(t, 3)
	u, other, third := all[0].on(), all[1], all[2]
	first := u.cpu.current
	second := u.clone()
	other.on().step()
	other.current(second)
	other.call(CallMove, 2)
	u.on().call(CallMove, 2)
	third.on().step()
	third.resumed(second, 0)
	if !third.machine.core.threads.HasReady() {
		t.Error("no CPU takes the second thread")
	}
	u.on().step()
	u.resumed(first, 0)
	u.call(CallMove, 2)
	third.on().step()
	third.resumed(first, 0)
	third.want(2, CallWhere)
}

// A wake-up on one CPU makes the thread run on another.
func TestWakeOnAnotherCPU(t *testing.T) {
	all := newUsers(t, 2)
	u, other := all[0].on(), all[1]
	at := u.memory(1, protRead|protWrite)
	id := u.clone()
	other.on().step()
	other.call(linux.SYS_FUTEX, at, futexWait, 0, 0)
	other.current(thread.None)
	u.on().want(1, linux.SYS_FUTEX, at, futexWake, 1)
	other.on().step()
	other.resumed(id, 0)
	if cpu := u.thread(id).CPU; cpu != 1 {
		t.Errorf("the thread is on CPU %d", cpu)
	}
}

// Under emulation a CPU that has just become busy keeps its ready threads for a millisecond. Then the timer hands them over.
func TestPatience(t *testing.T) {
	emulated(t)
	all := newUsers(t, 2)
	u, other := all[0].on(), all[1]
	u.cpu.busySince = u.now()
	id := u.clone()
	if u.machine.kicks != 0 || Held != 1 {
		t.Errorf("%d interrupts, held %d", u.machine.kicks, Held)
	}
	if at := int64(u.timer) - int64(u.machine.ticks); at < 0 || at > patience {
		t.Errorf("the timer expires in %d ns", at)
	}
	u.pass(patience)
	u.interrupt(amd64.VectorTimer)
	if u.machine.kicks != 1 || Held != 0 {
		t.Errorf("after a millisecond: %d interrupts, held %d", u.machine.kicks, Held)
	}
	other.on().step()
	other.current(id)
}

// The runtime can ask for the other CPU at once, if it knows that there is work for both.
func TestShare(t *testing.T) {
	emulated(t)
	all := newUsers(t, 2)
	u := all[0].on()
	u.cpu.busySince = u.now()
	u.clone()
	u.want(0, CallShare)
	if u.machine.kicks != 1 || Held != 0 {
		t.Errorf("%d interrupts, held %d", u.machine.kicks, Held)
	}
}

// A CPU that releases the lock wakes the next CPU that dozes, by number.
func TestUnlockWakes(t *testing.T) {
	for _, c := range []struct {
		dozing uint64
		by     int32
		wakes  int // none: no CPU
	}{
		{0, 0, none}, {1 << 1, 0, 1}, {1<<1 | 1<<2, 0, 1}, {1<<1 | 1<<2, 1, 2}, {1<<1 | 1<<2, 2, 1}, {1<<1 | 1<<2, 3, 1},
		{1 << 0, 3, 0}, {1 << 3, 3, 3}, {1<<0 | 1<<3, 2, 3},
	} {
		m := newMachine(t, 4, 1)
		k := m.core
		executing = m.cpus[c.by]
		k.lock(&k.cpus[c.by])
		k.dozing = c.dozing
		k.unlock(&k.cpus[c.by])
		for i, p := range m.cpus {
			if woken := p.pending != [2]uint64{}; woken != (i == c.wakes) {
				t.Errorf("CPUs %#b doze, CPU %d unlocks: CPU %d is woken: %v", c.dozing, c.by, i, woken)
			}
		}
		if k.big != 0 {
			t.Error("the lock is held")
		}
	}
}

// A CPU dozes until an interrupt while another CPU holds the lock, and not at all if the lock is free.
func TestDoze(t *testing.T) {
	m := newMachine(t, 2, 1)
	k, p := m.core, m.cpus[1]
	executing = p
	k.doze(p.cpu) // the lock is free, and no interrupt is pending
	k.big = 1
	p.cpu.kicked = 1
	p.raise(amd64.VectorKick)
	p.raise(amd64.VectorDevice + 3) // is served when the CPU enters the core
	k.doze(p.cpu)
	if p.cpu.kicked != 0 || k.dozing != 0 || p.cpu.dozes != 0 {
		t.Errorf("kicked %d, dozing %#x, dozes %d", p.cpu.kicked, k.dozing, p.cpu.dozes)
	}
	p.raise(amd64.VectorDevice + 3)
	k.doze(p.cpu)
	if p.cpu.rung != 1<<3 {
		t.Errorf("device interrupts %#x", p.cpu.rung)
	}
	k.big = 0
}

// A request to flush translations interrupts a CPU that runs the program. An idle CPU flushes when it next enters the core,
// unless page tables are removed.
func TestFlushRequests(t *testing.T) {
	all := newUsers(t, 2)
	u, idle := all[0].on(), all[1]
	at := u.memory(1, protRead|protWrite)
	u.write(at, 1)
	before := idle.flushes
	u.want(0, linux.SYS_MPROTECT, at, pageSize, protRead)
	if idle.flushes != before || idle.pending != [2]uint64{} {
		t.Error("an idle CPU is interrupted to flush")
	}
	if !idle.cpu.flush.open() {
		t.Error("the idle CPU is not asked to flush")
	}
	idle.on().interrupt(amd64.VectorTimer)
	if idle.flushes == before || idle.cpu.flush.open() {
		t.Error("a CPU that enters the core does not flush")
	}
}

// A CPU that flushes while it is idle leaves the address space of its last thread. A CPU that runs a thread stays in it.
func TestIdleCPULeavesSpace(t *testing.T) {
	const root = 0x7000
	for _, idle := range []bool{true, false} {
		all := newUsers(t, 2)
		u, other := all[0].on(), all[1]
		k, set := u.kernel(), uint64(3)
		if current := other.cpu.current; !idle {
			other.cpu.current = u.cpu.current
			defer func() { other.cpu.current = current }()
		}
		other.cpu.root, other.cpu.active, other.cr3 = root, addressOf(&set), root
		other.cpu.flush.ask()
		other.on()
		k.flushIfAsked(other.cpu)
		want := struct{ root, set uint64 }{root, 3}
		if idle {
			want.root, want.set = k.tables.Root, 3&^(1<<other.cpu.number)
		}
		if other.cpu.root != want.root || other.cr3 != want.root || set != want.set || idle != (other.cpu.active == 0) {
			t.Errorf("idle %v: root %#x, CR3 %#x, set %b, want %#x and %b", idle, other.cpu.root, other.cr3, set, want.root, want.set)
		}
		other.cpu.root, other.cpu.active = k.tables.Root, 0
	}
}

// membarrier(2) makes all CPUs pass a barrier, which is a flush of a translation. Private commands require registration.
func TestBarrier(t *testing.T) {
	users := newUsers(t, 2)
	u, other := users[0].on(), users[1]
	const query, global, globalExpedited, registerGlobal, private, registerPrivate = 0, 1, 2, 4, 8, 16
	const all = global | globalExpedited | registerGlobal | private | registerPrivate
	u.want(all, linux.SYS_MEMBARRIER, query, 0)
	u.fails(linux.EPERM, linux.SYS_MEMBARRIER, private, 0)
	u.want(0, linux.SYS_MEMBARRIER, registerPrivate, 0)
	for _, command := range []uint64{global, globalExpedited, registerGlobal, private} {
		u.want(0, linux.SYS_MEMBARRIER, command, 0)
		if open := other.cpu.flush.open(); open != (command != registerGlobal) {
			t.Errorf("command %d: the other CPU has to pass a barrier: %v", command, open)
		}
		other.on().interrupt(amd64.VectorTimer)
		u.on()
		u.fails(linux.EINVAL, linux.SYS_MEMBARRIER, command, 1)
	}
	u.fails(linux.EINVAL, linux.SYS_MEMBARRIER, 3, 0)
	u.fails(linux.EINVAL, linux.SYS_MEMBARRIER, 1<<20, 0)
}

// Thousands of threads run: their records and pages are allocated as they are needed.
func TestManyThreads(t *testing.T) {
	u := newUser(t)
	const count = 2000
	first := u.cpu.current
	for i := range count {
		id := u.call(linux.SYS_CLONE, linux.CLONE_VM|linux.CLONE_THREAD, 1<<20)
		if id != int64(i)+2 {
			t.Fatalf("thread %d is %d", i, id)
		}
	}
	for u.cpu.current == first {
		u.yields(1)
	}
	for range count {
		u.call(linux.SYS_EXIT)
	}
	u.current(first)
	if n := u.kernel().threads.Count(); n != 1 {
		t.Errorf("%d threads are left", n)
	}
}

// CPUs that enter the core at the same time get the lock one after another, also those that doze because another CPU holds it
// for long.
func TestContention(t *testing.T) {
	for seed := range uint64(8) {
		m := newMachine(t, 4, seed)
		calls := map[thread.ID]int{}
		p := m.cpus[0]
		at := uint64(p.call(linux.SYS_MMAP, 0, 64*pageSize, protRead|protWrite, mapPrivate|mapAnon))
		const most = 60
		for range 7 {
			p.call(linux.SYS_CLONE, linux.CLONE_VM|linux.CLONE_THREAD, at+pageSize)
		}
		m.program = func(p *modelCPU) {
			id := p.cpu.current
			calls[id]++
			if calls[id]%4 == 0 {
				p.call(linux.SYS_MADVISE, at, 64*pageSize, linux.MADV_DONTNEED) // flushes the translations of all CPUs
				return
			}
			p.access(at+uint64(id)*pageSize, true)
			p.call(linux.SYS_SCHED_YIELD)
		}
		for range 200 {
			m.run(100)
		}
		for id := thread.ID(1); id <= 8; id++ {
			if calls[id] < most {
				t.Errorf("seed %d: thread %d has made %d calls of %v", seed, id, calls[id], calls)
			}
		}
	}
}
