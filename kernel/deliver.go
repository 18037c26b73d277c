package kernel

import (
	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/kernel/signal"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// Signals: sending them to threads, calling handlers, and returning from handlers.
//
// A sent signal stays in Thread.Pending until the kernel is about to resume the thread; then leave delivers the
// signal. signalThread makes sure that this happens soon: if the thread waits in a call, the call ends with EINTR; if
// a CPU runs the thread, that CPU is interrupted. A handler runs on the thread's own or alternate stack, on which the
// kernel builds a signal frame (kernel/signal). Signals of faults skip Pending: fault calls the handler directly.

// signalThread implements tgkill(2): it sends signal n to a thread. n = 0 only checks that the thread exists. A signal that
// the thread neither blocks nor handles is discarded if its action is to do nothing.
func (k *core) signalThread(c *cpu, id thread.ID, n int32) int64 {
	number := signal.Number(n)
	switch {
	case !k.threads.Exists(id):
		return -int64(linux.ESRCH)
	case n == 0:
		return 0
	case !number.Valid():
		return -int64(linux.EINVAL)
	}
	th, bit := k.threads.At(id), uint64(signal.Of(number))
	blocked := th.Mask&bit != 0
	switch {
	case k.threads.WaitsFor(id, keySignal) && th.Sought&bit != 0:
		k.threads.Interrupt(id, k.take(th, number))
		return 0
	case !blocked && k.actions[number].Effect(number) == signal.None:
		return 0
	case !blocked && k.actions[number].Effect(number) == signal.End:
		k.powerOff(128 + uint32(n)) // all threads end, also the sender, before it returns from its call
	}
	th.Pending |= bit
	if blocked {
		return 0
	}
	k.threads.Interrupt(id, -int64(linux.EINTR))
	if th.State == thread.Running && id != c.current {
		k.kick(&k.cpus[th.CPU])
	}
	return 0
}

// signalProgram implements kill(2): it sends a signal to the thread of the program that listener selects.
func (k *core) signalProgram(c *cpu, n int32) int64 {
	return k.signalThread(c, k.listener(signal.Number(n)), n)
}

// listener returns the thread that receives a signal sent to the program: the first that waits for it or does not block
// it. If all threads block it, the first thread gets it when it unblocks the signal.
func (k *core) listener(n signal.Number) thread.ID {
	first := thread.None
	for id := thread.ID(1); id <= k.threads.Last(); id++ {
		switch {
		case !k.threads.Exists(id):
		case n.Valid() && k.threads.WaitsFor(id, keySignal) && k.threads.At(id).Sought&uint64(signal.Of(n)) != 0:
			return id
		case !n.Valid() || k.threads.At(id).Mask&uint64(signal.Of(n)) == 0:
			return id
		case first == thread.None:
			first = id
		}
	}
	return first
}

// deliver handles the first pending signal of a thread that is about to resume. It reports whether no further
// signal is pending.
func (k *core) deliver(c *cpu, th *thread.Thread) bool {
	n := signal.Set(th.Pending &^ th.Mask).First()
	th.Pending &^= uint64(signal.Of(n))
	switch k.actions[n].Effect(n) {
	case signal.End:
		k.powerOff(128 + uint32(n))
	case signal.Handle:
		info := signal.Info{Number: n, Code: signal.CodeThread, Value: programID}
		if n == signal.Profile && th.Sampled {
			info = profileInfo(th)
		}
		if n == signal.Urgent && th.Rung {
			th.Rung, info.Code = false, signal.CodeTimer
		}
		k.callHandler(th, info)
	}
	return th.Pending&^th.Mask == 0
}

// callHandler makes a thread resume in the handler of a signal. The handler returns by rt_sigreturn(2) to the
// interrupted code.
func (k *core) callHandler(th *thread.Thread, info signal.Info) {
	n := info.Number
	action := &k.actions[n]
	f := frameOf(th.Page)
	stack := signal.Stack{Address: th.SignalStack, Size: th.SignalStackSize}
	top := f.SP
	if action.Flags&signal.FlagOnStack != 0 && stack.Size != 0 && !stack.Holds(f.SP) {
		top = stack.Address + stack.Size
	}
	size := uint64(0)
	if f.Vector != amd64.VectorCall {
		size = k.xsaveSize
	}
	at, vector := signal.Room(top, size)
	if !k.touch(at, top-at, space.Write) {
		k.crash(&k.cpus[th.CPU], f, "a signal handler has no stack")
	}
	s := signalFrameAt(at)
	*s = signal.Frame{Return: uint64(entries.Sigreturn), Info: info}
	s.Context.Stack = stack
	s.Context.Mask = signal.Set(th.Mask)
	s.Context.Registers.Save(f)
	s.Context.Registers.FaultAddress = info.Value
	if size != 0 {
		s.Context.Registers.VectorState = vector
		copy(bytesAt(vector, int(size)), bytesAt(uint64(th.Page), int(size)))
	}

	th.Mask = uint64(action.Blocked(n, signal.Set(th.Mask)))
	f.IP, f.SP = action.Handler, at
	f.DI, f.SI, f.DX, f.AX = uint64(n), at+signal.InfoOffset, at+signal.ContextOffset, 0
	f.Vector = amd64.VectorCall
	f.Flags &^= amd64.FlagDirection | amd64.FlagTrap
	if action.Flags&signal.FlagOneShot != 0 {
		action.Handler = signal.Default
	}
}

// handlerReturns implements rt_sigreturn(2). The return of the handler has popped the return address, so the signal frame
// starts 8 bytes below the stack pointer.
func (k *core) handlerReturns(th *thread.Thread, f *amd64.Frame) int64 {
	at := f.SP - 8
	if !k.touch(at, signal.FrameSize, space.Read) {
		k.crash(&k.cpus[th.CPU], f, "a signal handler returned without its stack")
	}
	s := signalFrameAt(at)
	vector := s.Context.Registers.VectorState
	if vector != 0 {
		if !k.touch(vector, k.xsaveSize, space.Read) {
			k.crash(&k.cpus[th.CPU], f, "a signal handler returned without the vector registers")
		}
		copy(bytesAt(uint64(th.Page), int(k.xsaveSize)), bytesAt(vector, int(k.xsaveSize)))
		f.Vector = amd64.VectorSignal
	}
	th.Mask, _ = changeMask(0, signal.SetMask, uint64(s.Context.Mask))
	s.Context.Registers.Restore(f)
	return int64(f.AX)
}

// setAction implements rt_sigaction(2).
func (k *core) setAction(n int32, addr, old, size uint64) int64 {
	const actionSize = 32
	number := signal.Number(n)
	switch {
	case !number.Valid() || size != 8 || addr != 0 && (number == signal.Kill || number == signal.Stop):
		return -int64(linux.EINVAL)
	case addr != 0 && !k.touch(addr, actionSize, space.Read):
		return -int64(linux.EFAULT)
	case old != 0 && !k.touch(old, actionSize, space.Write):
		return -int64(linux.EFAULT)
	}
	before := k.actions[number]
	if addr != 0 {
		k.actions[number] = *actionAt(addr)
		if k.actions[number].Effect(number) == signal.None {
			k.discardSignal(number)
		}
	}
	if old != 0 {
		*actionAt(old) = before
	}
	return 0
}

// discardSignal removes a signal from the pending signals of all threads.
func (k *core) discardSignal(n signal.Number) {
	for id := thread.ID(1); id <= k.threads.Last(); id++ {
		th := k.threads.At(id)
		th.Pending &^= uint64(signal.Of(n))
		th.Sampled = th.Sampled && n != signal.Profile
		th.Rung = th.Rung && n != signal.Urgent
	}
}

// setMask implements rt_sigprocmask(2).
func (k *core) setMask(th *thread.Thread, how int, addr, old, size uint64) int64 {
	switch {
	case size != 8:
		return -int64(linux.EINVAL)
	case addr != 0 && !k.touch(addr, 8, space.Read):
		return -int64(linux.EFAULT)
	case old != 0 && !k.touch(old, 8, space.Write):
		return -int64(linux.EFAULT)
	}
	before := th.Mask
	if addr != 0 {
		mask, ok := changeMask(th.Mask, how, *word(addr))
		if !ok {
			return -int64(linux.EINVAL)
		}
		th.Mask = mask
	}
	if old != 0 {
		*word(old) = before
	}
	return 0
}

// changeMask calls signal.Change with arguments of plain integer types.
func changeMask(mask uint64, how int, set uint64) (uint64, bool) {
	m, ok := signal.Change(signal.Set(mask), how, signal.Set(set))
	return uint64(m), ok
}

// pendingSignals implements rt_sigpending(2). It stores the first bytes of the set, size of them.
func (k *core) pendingSignals(th *thread.Thread, set, size uint64) int64 {
	const word64 = 8
	switch {
	case size > word64:
		return -int64(linux.EINVAL)
	case !k.touch(set, size, space.Write):
		return -int64(linux.EFAULT)
	}
	pending := th.Pending & th.Mask
	for i := range size {
		bytesAt(set, int(size))[i] = byte(pending >> (8 * i))
	}
	return 0
}

// setSignalStack implements sigaltstack(2).
func (k *core) setSignalStack(th *thread.Thread, sp, addr, old uint64) int64 {
	const size, least, autoDisarm = 24, 2048, 1 << 31 // SS_AUTODISARM is ignored
	switch {
	case addr != 0 && !k.touch(addr, size, space.Read):
		return -int64(linux.EFAULT)
	case old != 0 && !k.touch(old, size, space.Write):
		return -int64(linux.EFAULT)
	}
	before := signal.Stack{Address: th.SignalStack, Size: th.SignalStackSize}
	switch {
	case before.Size == 0:
		before.Flags = signal.StackDisable
	case before.Holds(sp):
		before.Flags = signal.StackInUse
	}
	if addr != 0 {
		s := *stackAt(addr)
		switch {
		case before.Flags == signal.StackInUse:
			return -int64(linux.EPERM)
		case s.Flags&^autoDisarm > signal.StackDisable:
			return -int64(linux.EINVAL)
		case s.Flags&signal.StackDisable != 0:
			s = signal.Stack{}
		case s.Size < least:
			return -int64(linux.ENOMEM)
		}
		th.SignalStack, th.SignalStackSize = s.Address, s.Size
	}
	if old != 0 {
		*stackAt(old) = before
	}
	return 0
}
