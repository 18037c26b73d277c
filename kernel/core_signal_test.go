package kernel

import (
	"bytes"
	"testing"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/kernel/signal"
	"loam/kernel/thread"
)

// Signals, timers, pipes and interrupts of a core on a model of a machine with one CPU.

// A handler runs with its signals blocked. After it, the thread continues with its registers and its mask.
func TestHandler(t *testing.T) {
	u := newUser(t)
	u.stack()
	u.handle(10)
	u.handle(12)
	id := uint64(u.cpu.current)
	f := frameOf(u.page())
	f.IP, f.BX, f.R12 = 0x777, 88, 99
	before := *f
	u.call(linux.SYS_TKILL, id, 10)
	u.prepareCall(linux.SYS_TKILL, id, 12) // sent in the handler, which blocks it
	f.SP -= 4096
	u.serve()
	pending := u.memory(1, protRead|protWrite)
	u.want(0, linux.SYS_RT_SIGPENDING, pending, 8)
	if set := signal.Set(u.read(pending)); set != signal.Of(12) {
		t.Errorf("pending: %#x", set)
	}
	f.SP += 4096
	frame := u.returnsFrom(10)
	if frame.Info.Code != signal.CodeThread || frame.Context.Mask != 0 {
		t.Errorf("code %d, mask %#x", frame.Info.Code, frame.Context.Mask)
	}
	u.returnsFrom(12)
	if f.IP != before.IP || f.BX != before.BX || f.R12 != before.R12 || f.SP != before.SP || f.AX != 0 {
		t.Errorf("the thread continues with %+v, want %+v", *f, before)
	}
	if mask := u.machine.core.threads.At(u.cpu.current).Mask; mask != 0 {
		t.Errorf("the thread continues with the mask %#x", mask)
	}
}

// returnsFrom is handled for a thread whose registers for a call in the handler have overwritten the signal's number.
func (u user) returnsFrom(n signal.Number) signal.Frame {
	u.t.Helper()
	f := frameOf(u.page())
	if f.IP != modelHandler || signalFrameAt(f.SP).Info.Number != n {
		u.t.Fatalf("the thread is at %#x with signal %d, want the handler of signal %d", f.IP, signalFrameAt(f.SP).Info.Number, n)
	}
	frame := *signalFrameAt(f.SP)
	f.SP += 8
	u.call(linux.SYS_RT_SIGRETURN)
	return frame
}

// A handler with SA_ONSTACK runs on the alternate stack, which cannot be changed meanwhile.
func TestAlternateStack(t *testing.T) {
	u := newUser(t)
	u.stack()
	at := u.memory(4, protRead|protWrite)
	u.write(at, modelHandler)
	u.write(at+8, signal.FlagOnStack|signal.FlagOneShot)
	u.want(0, linux.SYS_RT_SIGACTION, 10, at, 0, 8)
	const size = 2 * page
	stack := u.memory(size/page, protRead|protWrite)
	u.write(at, stack)
	u.write(at+8, 0)
	u.write(at+16, 1000)
	u.fails(linux.ENOMEM, linux.SYS_SIGALTSTACK, at, 0)
	u.write(at+16, size)
	u.want(0, linux.SYS_SIGALTSTACK, at, 0)
	u.call(linux.SYS_TKILL, uint64(u.cpu.current), 10)
	f := frameOf(u.page())
	if f.SP < stack || f.SP >= stack+size {
		t.Errorf("the handler's stack is at %#x, want %#x", f.SP, stack)
	}
	u.fails(linux.EPERM, linux.SYS_SIGALTSTACK, at, 0)
	u.returnsFrom(10)
	u.want(0, linux.SYS_RT_SIGACTION, 10, 0, at, 8)
	if handler := u.read(at); handler != signal.Default {
		t.Errorf("after the first signal the handler is %#x", handler)
	}
	u.write(at+8, signal.StackDisable)
	u.want(0, linux.SYS_SIGALTSTACK, at, at)
	if got := u.read(at); got != stack {
		t.Errorf("the former stack was at %#x, want %#x", got, stack)
	}
}

// The errors of calls about signals are those of Linux.
func TestSignalErrors(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	u.fails(linux.EINVAL, linux.SYS_RT_SIGACTION, 0, at, 0, 8)
	u.fails(linux.EINVAL, linux.SYS_RT_SIGACTION, 65, at, 0, 8)
	u.fails(linux.EINVAL, linux.SYS_RT_SIGACTION, uint64(signal.Kill), at, 0, 8)
	u.want(0, linux.SYS_RT_SIGACTION, uint64(signal.Kill), 0, at, 8)
	u.fails(linux.EINVAL, linux.SYS_RT_SIGACTION, 10, at, 0, 4)
	u.fails(linux.EINVAL, linux.SYS_RT_SIGPROCMASK, 7, at, 0, 8)
	u.fails(linux.EINVAL, linux.SYS_RT_SIGPROCMASK, 0, at, 0, 16)
	u.fails(linux.EINVAL, linux.SYS_RT_SIGPENDING, at, 9)
	u.fails(linux.ESRCH, linux.SYS_TKILL, 77, 10)
	u.fails(linux.EINVAL, linux.SYS_TKILL, uint64(u.cpu.current), 65)
	u.want(0, linux.SYS_TKILL, uint64(u.cpu.current), 0)
	u.fails(linux.ESRCH, linux.SYS_RT_SIGQUEUEINFO, 99, 10, at)
}

// rt_sigtimedwait(2) takes a pending signal, one that is sent later, or none in its time.
func TestTimedWait(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	id := u.cpu.current
	u.write(at, uint64(signal.Of(10)))
	u.write(at+16, 0) // a struct timespec of 0
	u.write(at+24, 0)
	u.want(0, linux.SYS_RT_SIGPROCMASK, signal.Block, at, 0, 8)
	u.fails(linux.EAGAIN, linux.SYS_RT_SIGTIMEDWAIT, at, at+32, at+16, 8)
	u.want(0, linux.SYS_TKILL, uint64(id), 10)
	u.want(10, linux.SYS_RT_SIGTIMEDWAIT, at, at+32, at+16, 8)
	if n := u.read(at + 32); n != 10 {
		t.Errorf("the siginfo has signal %d", n)
	}
	other := u.clone()
	u.call(linux.SYS_RT_SIGTIMEDWAIT, at, 0, 0, 8)
	u.resumed(other, 0)
	u.want(0, linux.SYS_KILL, programID, 10)
	u.call(linux.SYS_SCHED_YIELD)
	u.resumed(id, 10)
}

// A signal whose default action is to end the program powers the machine off and reports the number of the signal.
func TestFatalSignal(t *testing.T) {
	u := newUser(t)
	defer func() {
		if _, ended := recover().(machineEnds); !ended || u.machine.status != (128+15)&exitMost {
			t.Errorf("the machine has status %d", u.machine.status)
		}
	}()
	u.call(linux.SYS_TKILL, uint64(u.cpu.current), 15)
}

// A profiling timer sends SIGPROF after an interval of CPU time, and an alarm SIGURG.
func TestProfileTimers(t *testing.T) {
	u := newUser(t)
	u.stack()
	u.handle(signal.Profile)
	u.handle(signal.Urgent)
	at := u.memory(1, protRead|protWrite)
	const threadClock, toThread = 3, 4
	for i, n := range []signal.Number{signal.Profile, signal.Urgent} {
		u.write(at+8, uint64(n)|toThread<<32)
		u.write(at+16, uint64(u.cpu.current))
		u.want(0, linux.SYS_TIMER_CREATE, threadClock, at, at+64)
		u.fails(linux.EAGAIN, linux.SYS_TIMER_CREATE, threadClock, at, at+64)
		id := u.read(at + 64)
		u.write(at+128, 0) // an interval of 5 ms, the first after 2 ms
		u.write(at+136, 5e6)
		u.write(at+144, 0)
		u.write(at+152, 2e6)
		u.want(0, linux.SYS_TIMER_SETTIME, id, 0, at+128, 0)
		for _, wait := range []uint64{2e6, 5e6} {
			u.machine.ticks += wait - 1e6
			u.call(linux.SYS_GETPID)
			if frameOf(u.page()).IP == modelHandler {
				t.Errorf("timer %d expires 1 ms early", i)
			}
			u.machine.ticks += 1e6
			u.call(linux.SYS_GETPID)
			u.returnsFrom(n)
		}
		u.want(0, linux.SYS_TIMER_DELETE, id)
		u.fails(linux.EINVAL, linux.SYS_TIMER_DELETE, id)
		u.machine.ticks += 1e9
		u.want(programID, linux.SYS_GETPID)
	}
	u.fails(linux.EINVAL, linux.SYS_TIMER_CREATE, 0, at, at+64)
	u.fails(linux.EINVAL, linux.SYS_SETITIMER, 0, at, 0)
	u.write(at+136, 5000) // in microseconds
	u.want(0, linux.SYS_SETITIMER, 2, at+128, 0)
	u.machine.ticks += 1e6
	u.call(linux.SYS_GETPID)
	u.machine.ticks += 1e9
	u.call(linux.SYS_GETPID)
	if f := u.returnsFrom(signal.Profile); f.Info.Code != signal.CodeKernel {
		t.Errorf("the signal of the process's timer has the code %d", f.Info.Code)
	}
}

// A pipe of the runtime transfers bytes in order. Its ends block, or return EAGAIN if they are non-blocking.
func TestPipe(t *testing.T) {
	u := newUser(t)
	at := u.memory(4, protRead|protWrite)
	u.fails(linux.EINVAL, linux.SYS_PIPE2, at, 1)
	u.want(0, linux.SYS_PIPE2, at, linux.O_NONBLOCK)
	read, written := u.read(at)&(1<<32-1), u.read(at)>>32
	u.fails(linux.EAGAIN, linux.SYS_READ, read, at, 8)
	u.fails(linux.EBADF, linux.SYS_WRITE, read, at, 8)
	u.fails(linux.EBADF, linux.SYS_READ, written, at, 8)
	for i := range uint64(3) {
		u.write(at+i*page, 1000+i)
	}
	u.want(2*page-page, linux.SYS_WRITE, written, at, 2*page)
	u.fails(linux.EAGAIN, linux.SYS_WRITE, written, at, 1)
	u.want(page, linux.SYS_READ, read, at+page, 3*page)
	if v := u.read(at + page); v != 1000 {
		t.Errorf("the pipe transfers %d", v)
	}
	const toFlags, fromFlags = linux.F_SETFL, linux.F_GETFL
	u.want(linux.O_NONBLOCK, linux.SYS_FCNTL, read, fromFlags)
	u.want(0, linux.SYS_FCNTL, read, toFlags, 0)
	reader := u.cpu.current
	writer := u.clone()
	u.call(linux.SYS_READ, read, at, 8)
	u.resumed(writer, 0)
	u.want(3, linux.SYS_WRITE, written, at, 3)
	u.call(linux.SYS_SCHED_YIELD)
	u.resumed(reader, -int64(linux.EINTR)) // the runtime repeats the call
	u.want(3, linux.SYS_READ, read, at, 8)
	u.want(0, linux.SYS_CLOSE, written)
	u.want(0, linux.SYS_READ, read, at, 8)
	u.want(0, linux.SYS_CLOSE, read)
	u.fails(linux.EBADF, linux.SYS_CLOSE, read)
	for range maxPipes {
		u.want(0, linux.SYS_PIPE2, at, 0)
	}
	u.fails(linux.EMFILE, linux.SYS_PIPE2, at, 0)
}

// An interrupt of a device sets its bit and wakes the poller; a write to the poller's descriptor wakes it too.
func TestPoll(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	id := u.cpu.current
	defer func() { Rung = 0 }()
	number := u.call(CallMessage)
	if number < 0 {
		t.Fatalf("no interrupt: %d", number)
	}
	const forever = ^uint64(0)
	u.call(CallPoll, forever)
	u.current(thread.None)
	u.raise(amd64.VectorDevice + uint64(number))
	u.step()
	u.resumed(id, 0)
	if Rung != 1<<number {
		t.Errorf("bits %#x", Rung)
	}
	u.want(0, CallPoll, forever)
	Rung = 0
	u.want(0, CallPoll, 0)
	u.want(8, linux.SYS_WRITE, wakeFD, at, 8)
	u.want(1, CallPoll, forever)
	u.want(0, CallClose, uint64(number))
	u.fails(linux.EINVAL, CallClose, uint64(number))
	u.fails(linux.EINVAL, CallDone, MaxInterrupts)
	for range MaxInterrupts {
		u.call(CallMessage)
	}
	u.fails(linux.ENOSPC, CallMessage)
	u.fails(linux.ENXIO, CallLine, 1000, 0)
}

// The program's output goes to the console, and the end of the program ends the machine with its status.
func TestOutputAndExit(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	u.write(at, 'h'|'i'<<8)
	u.want(2, linux.SYS_WRITE, 1, at, 2)
	u.fails(linux.EBADF, linux.SYS_WRITE, 7, at, 2)
	if !bytes.Equal(u.machine.output, []byte("hi")) {
		t.Errorf("output %q", u.machine.output)
	}
	defer func() {
		if _, ended := recover().(machineEnds); !ended || u.machine.status != 7 {
			t.Errorf("the machine has status %d", u.machine.status)
		}
	}()
	u.call(linux.SYS_EXIT_GROUP, 7)
}
