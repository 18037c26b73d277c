package kernel

import (
	"slices"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/kernel/signal"
	"loam/kernel/thread"
)

// Tests of signals: default actions, faults, the state in a handler, and SYSCALL instructions.

// act sets the action of a signal; mask are the signals that its handler blocks.
func (u user) act(n signal.Number, handler, flags uint64, mask signal.Set) {
	u.t.Helper()
	at := u.memory(1, protRead|protWrite)
	u.write(at, handler)
	u.write(at+8, flags)
	u.write(at+24, uint64(mask))
	u.want(0, linux.SYS_RT_SIGACTION, uint64(n), at, 0, 8)
}

// block blocks signals of the current thread.
func (u user) block(how uint64, set signal.Set) {
	u.t.Helper()
	at := u.memory(1, protRead|protWrite)
	u.write(at, uint64(set))
	u.want(0, linux.SYS_RT_SIGPROCMASK, how, at, 0, 8)
}

// pendingSet returns what sigpending(2) reports.
func (u user) pendingSet() signal.Set {
	u.t.Helper()
	at := u.memory(1, protRead|protWrite)
	u.want(0, linux.SYS_RT_SIGPENDING, at, 8)
	return signal.Set(u.read(at))
}

// Without a handler a signal ends the machine with the status of a shell, unless it is ignored by default. Signals that
// stop a process are ignored, too: nothing could continue the program.
func TestDefaultActions(t *testing.T) {
	ignored := []signal.Number{
		signal.Child, signal.Continue, signal.Urgent, signal.Window,
		signal.Stop, signal.StopTTY, signal.ReadTTY, signal.WriteTTY,
	}
	for n := signal.Number(1); n.Valid(); n++ {
		m := newMachine(t, 1, 1)
		u := user{m.cpus[0], t}
		if slices.Contains(ignored, n) {
			u.want(0, linux.SYS_TKILL, uint64(u.cpu.current), uint64(n))
			continue
		}
		if status := m.ends(func() { u.call(linux.SYS_TKILL, uint64(u.cpu.current), uint64(n)) }); status != (128+uint32(n))&exitMost {
			t.Errorf("signal %d: status %d", n, status)
		}
	}
}

// A signal that ends the program ends it before the sender returns from its call, also if another thread is the first that does
// not block the signal.
func TestFatalSignalEndsSender(t *testing.T) {
	m := newMachine(t, 1, 1)
	u := user{m.cpus[0], t}
	other := u.clone()
	u.call(linux.SYS_SCHED_YIELD)
	u.current(other)
	if status := m.ends(func() { u.prepareCall(linux.SYS_KILL, programID, uint64(signal.Kill)); u.serve() }); status != (128+9)&exitMost {
		t.Errorf("status %d", status)
	}
}

// An ignored signal is discarded when it is sent, unless the thread blocks it. It does not end a call that waits, whether
// the call began before or after the signal was sent.
func TestIgnored(t *testing.T) {
	for _, c := range []struct {
		n       signal.Number
		handler uint64
	}{{signal.Child, signal.Default}, {10, signal.Ignore}, {15, signal.Ignore}} {
		all := newUsers(t, 2)
		u, other := all[0].on(), all[1]
		u.act(c.n, c.handler, 0, 0)
		at := u.timespec(u.memory(1, protRead|protWrite), 1, 0)
		id := u.clone()
		other.on().step() // the other CPU takes the thread
		other.current(id)
		u.on().want(0, linux.SYS_TKILL, uint64(id), uint64(c.n))
		if other.machine.core.threads.At(id).Pending != 0 {
			t.Errorf("signal %d is pending, and it is ignored", c.n)
		}
		other.on().call(linux.SYS_NANOSLEEP, at)
		if other.cpu.current == id {
			t.Errorf("signal %d: the sleep of a thread returns %d", c.n, other.result())
		}
		u.on().want(0, linux.SYS_TKILL, uint64(id), uint64(c.n))
		if !u.kernel().threads.WaitsFor(id, keySleep) {
			t.Errorf("signal %d ends a sleep", c.n)
		}
		u.block(signal.Block, signal.Of(c.n))
		u.want(0, linux.SYS_TKILL, uint64(u.cpu.current), uint64(c.n))
		if set := u.pendingSet(); set != signal.Of(c.n) {
			t.Errorf("signal %d is blocked and ignored: pending %#x", c.n, set)
		}
	}
}

// A signal that becomes ignored is no longer pending (sigaction(2)).
func TestIgnoringDiscards(t *testing.T) {
	u := newUser(t)
	u.block(signal.Block, signal.Of(10)|signal.Of(signal.Child))
	for _, n := range []signal.Number{10, signal.Child} {
		u.want(0, linux.SYS_TKILL, uint64(u.cpu.current), uint64(n))
	}
	u.act(10, signal.Ignore, 0, 0)
	if set := u.pendingSet(); set != signal.Of(signal.Child) {
		t.Errorf("pending %#x", set)
	}
	u.act(signal.Child, signal.Default, 0, 0)
	if set := u.pendingSet(); set != 0 {
		t.Errorf("pending %#x", set)
	}
}

// Exceptions of the program become signals, with the codes of Linux and the address of the instruction.
func TestFaultSignals(t *testing.T) {
	const at = 0x4444
	for _, c := range []struct {
		vector uint64
		n      signal.Number
		code   int32
		value  uint64
	}{
		{amd64.VectorDivide, signal.FloatTrap, signal.CodeDivide, at},
		{amd64.VectorX87, signal.FloatTrap, signal.CodeFloat, at},
		{amd64.VectorSIMD, signal.FloatTrap, signal.CodeFloat, at},
		{amd64.VectorInvalid, signal.Illegal, signal.CodeOperand, at},
		{amd64.VectorBreakpoint, signal.Trap, signal.CodeBreakpoint, 0},
		{amd64.VectorDebug, signal.Trap, signal.CodeBreakpoint, 0},
		{amd64.VectorStack, signal.Bus, signal.CodeKernel, 0},
		{amd64.VectorAlign, signal.Bus, signal.CodeKernel, 0},
		{amd64.VectorProtection, signal.Segment, signal.CodeKernel, 0},
	} {
		u := newUser(t)
		u.stack()
		u.handle(c.n)
		f := frameOf(u.page())
		f.IP, f.Vector, f.Code, f.BX = at, c.vector, 7, 55
		u.serve()
		s := u.handled(c.n)
		if s.Info.Code != c.code || s.Info.Value != c.value {
			t.Errorf("vector %d: code %d, value %#x; want %d, %#x", c.vector, s.Info.Code, s.Info.Value, c.code, c.value)
		}
		if r := s.Context.Registers; r.Vector != c.vector || r.Code != 7 || r.IP != at || r.BX != 55 {
			t.Errorf("vector %d: registers %+v", c.vector, r)
		}
		if f.IP != at || f.BX != 55 {
			t.Errorf("vector %d: the program continues at %#x", c.vector, f.IP)
		}
	}
}

// A page fault says whether the address is mapped, and with which rights the access would be allowed.
func TestPageFaults(t *testing.T) {
	u := newUser(t)
	u.stack()
	u.handle(signal.Segment)
	const write, fetch, present = amd64.FaultWrite, amd64.FaultFetch, amd64.FaultPresent
	const execute = 4
	readable, none, writable := u.memory(1, protRead), u.memory(1, protNone), u.memory(1, protRead|protWrite)
	code := u.memory(1, protRead|execute)
	for _, c := range []struct {
		addr, error uint64
		code        int32 // 0: the fault is served
	}{
		{readable, 0, 0},
		{readable + 4095, present, 0}, // another CPU has mapped it meanwhile
		{readable, write, signal.CodeNotAllowed},
		{readable, fetch, signal.CodeNotAllowed},
		{none, 0, signal.CodeNotAllowed},
		{none, write, signal.CodeNotAllowed},
		{writable, write, 0},
		{writable, present | write, 0},
		{writable, fetch, signal.CodeNotAllowed},
		{code, fetch, 0},
		{code, write, signal.CodeNotAllowed},
		{0, 0, signal.CodeNotMapped},
		{8, write, signal.CodeNotMapped},
		{writable + 1<<29, 0, signal.CodeNotMapped},
		{1<<64 - 8, 0, signal.CodeNotMapped},
		{1<<64 - 8, present | write, signal.CodeNotAllowed}, // the program's own file
	} {
		f := frameOf(u.page())
		f.IP, f.Vector, f.Code = 0x4444, amd64.VectorPage, c.error
		u.cr2 = c.addr
		u.serve()
		if c.code == 0 {
			if f.IP != 0x4444 {
				t.Fatalf("a fault at %#x with code %#x is not served", c.addr, c.error)
			}
			if entry, _ := u.kernel().tables.Lookup(c.addr); entry&amd64.PagePresent == 0 {
				t.Errorf("no page at %#x", c.addr)
			}
			continue
		}
		if s := u.handled(signal.Segment); s.Info.Code != c.code || s.Info.Value != c.addr || s.Context.Registers.FaultAddress != c.addr {
			t.Errorf("a fault at %#x with code %#x: code %d, address %#x", c.addr, c.error, s.Info.Code, s.Info.Value)
		}
	}
}

// A fault that no handler can be called for ends the machine with a report: the reason, the registers, and the calls that
// were not served.
func TestUnhandledFault(t *testing.T) {
	for what, prepare := range map[string]func(u user){
		"no handler": func(user) {},
		"ignored":    func(u user) { u.act(signal.Segment, signal.Ignore, 0, 0) },
		"blocked": func(u user) {
			u.handle(signal.Segment)
			u.block(signal.Block, signal.Of(signal.Segment))
		},
	} {
		m := newMachine(t, 1, 1)
		u := user{m.cpus[0], t}
		u.stack()
		prepare(u)
		u.fails(linux.ENOSYS, 333)
		u.fails(linux.ENOSYS, 333)
		u.fails(linux.ENOSYS, 1<<20)
		f := frameOf(u.page())
		f.Vector, f.R13, u.cr2 = amd64.VectorPage, 0xabcdef, 0x18
		if status := m.ends(u.serve); status != statusCrash {
			t.Errorf("%s: status %d", what, status)
		}
		for _, line := range []string{
			"loam: the program failed where nothing could be told\n", "vector 0x000000000000000e\n", "cr2 0x0000000000000018\n",
			"r13 0x0000000000abcdef\n", "not served: system call 333, 2 times\n", "not served: system call 511, 1 times\n",
		} {
			if !strings.Contains(string(m.output), line) {
				t.Errorf("%s: the report lacks %q:\n%s", what, line, m.output)
			}
		}
	}
}

// A handler without room on its stack ends the machine, because the program could not continue.
func TestHandlerWithoutStack(t *testing.T) {
	for _, sp := range []uint64{0, 64, 1 << 40} {
		m := newMachine(t, 1, 1)
		u := user{m.cpus[0], t}
		u.handle(10)
		frameOf(u.page()).SP = sp
		if status := m.ends(func() { u.call(linux.SYS_TKILL, uint64(u.cpu.current), 10) }); status != statusCrash {
			t.Errorf("status %d", status)
		}
		if !strings.Contains(string(m.output), "a signal handler has no stack") {
			t.Errorf("output: %s", m.output)
		}
	}
}

// While a handler runs, its signal and the signals of its action are blocked. SIGKILL and SIGSTOP cannot be blocked.
func TestHandlerMask(t *testing.T) {
	const unstoppable = signal.Set(1<<(signal.Kill-1) | 1<<(signal.Stop-1))
	for _, c := range []struct {
		before, mask signal.Set
		flags        uint64
		want         signal.Set
	}{
		{0, 0, 0, signal.Of(10)},
		{0, 0, signal.FlagNoDefer, 0},
		{signal.Of(12), signal.Of(15), 0, signal.Of(10) | signal.Of(12) | signal.Of(15)},
		{signal.Of(12), signal.Of(10), signal.FlagNoDefer, signal.Of(10) | signal.Of(12)},
		{0, 1<<64 - 1, 0, ^unstoppable},
		{unstoppable, 0, 0, signal.Of(10)},
	} {
		u := newUser(t)
		u.stack()
		u.act(10, modelHandler, c.flags, c.mask)
		u.block(signal.SetMask, c.before)
		u.call(linux.SYS_TKILL, uint64(u.cpu.current), 10)
		th := u.thread(u.cpu.current)
		if signal.Set(th.Mask) != c.want {
			t.Errorf("mask %#x, want %#x", th.Mask, c.want)
		}
		u.returnsFrom(10)
		if want := c.before &^ unstoppable; signal.Set(th.Mask) != want {
			t.Errorf("after the handler: mask %#x, want %#x", th.Mask, want)
		}
	}
}

// Pending signals are delivered one after another, those of faults first: the handler of each is entered before the thread
// continues.
func TestDeliveryOrder(t *testing.T) {
	u := newUser(t)
	u.stack()
	numbers := []signal.Number{15, 10, signal.Segment, 64, signal.Bus}
	all := signal.Set(0)
	for _, n := range numbers {
		u.act(n, modelHandler, 0, 1<<64-1)
		all |= signal.Of(n)
	}
	u.block(signal.Block, all)
	for range 2 { // a signal that is sent twice is pending once
		for _, n := range numbers {
			u.want(0, linux.SYS_TGKILL, programID, uint64(u.cpu.current), uint64(n))
		}
	}
	if got := u.pendingSet(); got != all {
		t.Errorf("pending %#x, want %#x", got, all)
	}
	at := u.memory(1, protRead|protWrite)
	u.write(at, 0)
	u.call(linux.SYS_RT_SIGPROCMASK, signal.SetMask, at, 0, 8)
	for _, want := range []signal.Number{signal.Bus, signal.Segment, 10, 15, 64} {
		u.returnsFrom(want)
	}
	if f := frameOf(u.page()); f.IP == modelHandler || f.AX != 0 {
		t.Errorf("the thread is at %#x, result %d", f.IP, f.AX)
	}
}

// The vector registers of a thread that was interrupted are saved in the signal frame and loaded from there. A thread that
// has made a call has none.
func TestHandlerVectors(t *testing.T) {
	u := newUser(t)
	u.stack()
	u.handle(10)
	f := frameOf(u.page())
	registers := bytesAt(uint64(u.page()), fxsaveSize)
	for i := range registers {
		registers[i] = byte(i)
	}
	u.thread(u.cpu.current).Pending = uint64(signal.Of(10))
	f.Vector = amd64.VectorTimer
	u.serve()
	s := signalFrameAt(f.SP)
	state := bytesAt(s.Context.Registers.VectorState, fxsaveSize)
	if s.Context.Registers.VectorState%64 != 0 || !slices.Equal(state, registers) {
		t.Error("the signal frame does not contain the vector registers")
	}
	state[100] = 200 // a handler may change the registers
	clear(registers)
	u.returnsFrom(10)
	if registers[99] != 99 || registers[100] != 200 || f.Vector != amd64.VectorSignal {
		t.Errorf("after the handler: %d and %d, vector %#x", registers[99], registers[100], f.Vector)
	}
	u.call(linux.SYS_TKILL, uint64(u.cpu.current), 10)
	if at := signalFrameAt(f.SP).Context.Registers.VectorState; at != 0 {
		t.Errorf("the thread has made a call, and its vector registers are at %#x", at)
	}
}

// A handler may change the registers of the program, but no flag of the system, such as the one that enables interrupts.
func TestHandlerChangesRegisters(t *testing.T) {
	u := newUser(t)
	u.stack()
	u.handle(10)
	f := frameOf(u.page())
	f.Flags = amd64.FlagFixed | amd64.FlagInterrupt | amd64.FlagDirection
	u.call(linux.SYS_TKILL, uint64(u.cpu.current), 10)
	if f.Flags&amd64.FlagDirection != 0 {
		t.Error("a handler begins with the direction flag set (AMD64 ABI, 3.2.1)")
	}
	r := &signalFrameAt(f.SP).Context.Registers
	r.IP, r.BX, r.Flags = 0x9999, 42, 1
	u.returnsFrom(10)
	const carry = 1
	if f.IP != 0x9999 || f.BX != 42 || f.Flags != amd64.FlagFixed|amd64.FlagInterrupt|carry {
		t.Errorf("the program continues at %#x with %d and the flags %#x", f.IP, f.BX, f.Flags)
	}
}

// A new thread inherits the mask and the name, but no pending signal and no alternate stack.
func TestCloneSignals(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	u.write(at, uint64('w')|'1'<<8)
	const setName, getName = 15, 16
	u.want(0, linux.SYS_PRCTL, setName, at)
	u.block(signal.Block, signal.Of(10))
	u.want(0, linux.SYS_TKILL, uint64(u.cpu.current), 10)
	u.write(at+64, at)
	u.write(at+80, 4096)
	u.want(0, linux.SYS_SIGALTSTACK, at+64, 0)
	parent, id := u.thread(u.cpu.current), u.clone()
	th := u.thread(id)
	if th.Mask != uint64(signal.Of(10)) || th.Pending != 0 || th.SignalStackSize != 0 || th.Name != parent.Name {
		t.Errorf("%+v", *th)
	}
	u.yields(1)
	u.resumed(id, 0)
	u.want(0, linux.SYS_PRCTL, getName, at+32)
	if got := u.read(at + 32); got != uint64('w')|'1'<<8 {
		t.Errorf("name %#x", got)
	}
}

// A signal to a thread that another CPU runs interrupts that CPU, unless the thread blocks it.
func TestSignalInterruptsCPU(t *testing.T) {
	for _, blocked := range []bool{false, true} {
		all := newUsers(t, 2)
		u, other := all[0].on(), all[1]
		u.stack()
		u.handle(10)
		if blocked {
			u.block(signal.Block, signal.Of(10))
		}
		id := u.clone()
		other.on().step()
		other.current(id)
		u.on().want(0, linux.SYS_TKILL, uint64(id), 10)
		if other.pending != [2]uint64{} == blocked {
			t.Errorf("blocked %v: pending interrupts %#x", blocked, other.pending)
		}
		if !blocked {
			other.on().step()
			other.handled(10)
		}
	}
}

// rt_sigtimedwait(2) takes signals in the order of their delivery. Another signal interrupts it, and a signal to the program
// goes to the thread that waits for it.
func TestTimedWaitOrder(t *testing.T) {
	u := newUser(t)
	u.stack()
	u.handle(12)
	at := u.memory(1, protRead|protWrite)
	sought := signal.Of(10) | signal.Of(signal.Segment) | signal.Of(64)
	u.block(signal.Block, sought)
	u.write(at, uint64(sought))
	u.write(at+32, 1<<64-1) // is overwritten
	id := u.cpu.current
	for _, n := range []signal.Number{64, 10, signal.Segment} {
		u.want(0, linux.SYS_TKILL, uint64(id), uint64(n))
	}
	for _, want := range []signal.Number{signal.Segment, 10, 64} {
		u.want(int64(want), linux.SYS_RT_SIGTIMEDWAIT, at, at+32, 0, 8)
		if got := u.read(at + 32); got != uint64(want) {
			t.Errorf("the siginfo begins with %#x, want %#x", got, want)
		}
	}
	other := u.clone()
	u.call(linux.SYS_RT_SIGTIMEDWAIT, at, 0, 0, 8)
	u.current(other)
	u.block(signal.SetMask, 0) // this thread could receive it, too
	u.want(0, linux.SYS_KILL, programID, 64)
	u.yields(1)
	u.resumed(id, 64)
	u.call(linux.SYS_RT_SIGTIMEDWAIT, at, 0, 0, 8)
	u.resumed(other, 0)
	u.call(linux.SYS_TKILL, uint64(id), 12)
	if u.cpu.current == other {
		u.yields(1)
	}
	u.current(id)
	if f := u.handled(12); int64(f.Context.Registers.AX) != -int64(linux.EINTR) {
		t.Errorf("interrupted: %d", int64(f.Context.Registers.AX))
	}
}

// sigpending(2) stores only as many bytes as its caller asks for, and sigaltstack(2) rejects unknown flags.
func TestSignalArguments(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	u.block(signal.Block, signal.Of(10))
	u.want(0, linux.SYS_TKILL, uint64(u.cpu.current), 10)
	u.write(at, 1<<64-1)
	u.want(0, linux.SYS_RT_SIGPENDING, at, 4)
	if got := u.read(at); got != 0xffff_ffff_0000_0200 {
		t.Errorf("four bytes of the set: %#x", got)
	}
	u.want(0, linux.SYS_RT_SIGPENDING, at, 0)
	for flags, want := range map[uint64]int64{0: 0, signal.StackInUse: 0, 4: -int64(linux.EINVAL), 3: -int64(linux.EINVAL), signal.StackDisable: 0} {
		u.write(at, at)
		u.write(at+8, flags)
		u.write(at+16, 4096)
		u.want(want, linux.SYS_SIGALTSTACK, at, 0)
	}
}

// A SYSCALL instruction becomes SIGSYS, from which the runtime makes a call of package posix. The core serves it itself if
// the call must be made by the thread, or if nothing handles the signal.
func TestSyscallInstruction(t *testing.T) {
	const at = 0x4444
	for _, c := range []struct {
		what    string
		number  uint64
		handled bool
		blocked bool
		signal  bool
	}{
		{"a call of package posix", linux.SYS_GETPID, true, false, true},
		{"a call that the thread makes", linux.SYS_GETTID, true, false, false},
		{"no handler", linux.SYS_GETPID, false, false, false},
		{"blocked", linux.SYS_GETPID, true, true, false},
		{"an unknown call", 4000, true, false, true},
	} {
		u := newUser(t)
		u.stack()
		if c.handled {
			u.handle(signal.System)
		}
		if c.blocked {
			u.block(signal.Block, signal.Of(signal.System))
		}
		f := frameOf(u.page())
		u.prepareCall(c.number)
		f.IP, f.Vector = at, amd64.VectorSyscall
		u.serve()
		if !c.signal {
			if f.IP != at || int64(f.AX) != 1 {
				t.Errorf("%s: at %#x with the result %d", c.what, f.IP, int64(f.AX))
			}
			continue
		}
		s := u.handled(signal.System)
		if s.Info.Code != signal.CodeSeccomp || s.Info.Call != uint32(c.number) || s.Info.Arch != signal.ArchAMD64 || s.Info.Value != at {
			t.Errorf("%s: %+v", c.what, s.Info)
		}
		if s.Context.Registers.AX != c.number {
			t.Errorf("%s: RAX is %d", c.what, s.Context.Registers.AX)
		}
	}
}

// A thread that ends while signals are pending leaves none to the thread that gets its number.
func TestEndedThread(t *testing.T) {
	u := newUser(t)
	first := u.cpu.current
	id := u.clone()
	u.thread(id).Mask = 1<<64 - 1
	u.want(0, linux.SYS_TKILL, uint64(id), 10)
	u.yields(1)
	u.current(id)
	u.call(linux.SYS_EXIT)
	u.current(first)
	u.fails(linux.ESRCH, linux.SYS_TKILL, uint64(id), 10)
	if again := u.clone(); again != id || u.thread(again).Pending != 0 {
		t.Errorf("thread %d, want %d again; pending %#x", again, id, u.thread(again).Pending)
	}
	u.want(0, linux.SYS_TKILL, uint64(thread.ID(id)), 0)
}
