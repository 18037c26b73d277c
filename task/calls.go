package task

import (
	"time"

	"loam/abi/linux"
	"loam/posix"
	"loam/posix/call"
	"loam/posix/file"
	"loam/task/futexcall"
	"loam/task/ipc"
	"loam/task/mount"
	"loam/task/privilege"
	"loam/task/rseq"
	"loam/task/schedule"
	"loam/task/seccomp"
	"loam/task/signal"
	"loam/task/trace"
	"loam/task/wait"
)

// noResult is returned by a call after which the registers are not changed: rt_sigreturn, execve, exit.
const noResult linux.Errno = 1 << 16

// serveFunc executes a system call of a thread.
type serveFunc func(t *Task, a call.Args) (uint64, linux.Errno)

// served holds the calls of this package, by number. It is not changed after init.
var served [call.Numbers]serveFunc

// personality holds the rows of the table in posix/call that have a function, by the number of the call.
var personality [call.Numbers]*call.Row

// Kinds of calls that a task treats in a special way.
const (
	masks  = 1 << iota // the call sets a signal mask while it waits
	reads              // the call counts as a read in /proc/PID/io
	writes             // the call counts as a write in /proc/PID/io
)

// kinds holds the kinds of calls, by number: a set of the bits above.
var kinds = [call.Numbers]uint8{
	linux.SYS_PPOLL: masks, linux.SYS_EPOLL_PWAIT: masks, linux.SYS_EPOLL_PWAIT2: masks, linux.SYS_PSELECT6: masks,
	linux.SYS_READ: reads, linux.SYS_READV: reads, linux.SYS_PREAD64: reads, linux.SYS_PREADV: reads, linux.SYS_PREADV2: reads,
	linux.SYS_WRITE: writes, linux.SYS_WRITEV: writes, linux.SYS_PWRITE64: writes, linux.SYS_PWRITEV: writes, linux.SYS_PWRITEV2: writes,
}

func init() {
	for i := range call.Table {
		if r := &call.Table[i]; r.Who&call.Personality != 0 {
			personality[r.Number] = r
		}
	}
	for _, calls := range []map[int]serveFunc{memoryCalls, processCalls, signalCalls, timeCalls, idCalls, pidfdCalls, miscCalls} {
		for number, serve := range calls {
			served[number] = serve
		}
	}
	addFamilies()
}

// addFamilies adds the system calls of other packages to served. These packages see a task as an interface,
// which callTask implements.
func addFamilies() {
	for number, serve := range schedule.Calls {
		served[number] = func(t *Task, a call.Args) (uint64, linux.Errno) { return serve(callTask{t}, a) }
	}
	for number, serve := range privilege.Calls {
		served[number] = func(t *Task, a call.Args) (uint64, linux.Errno) { return serve(callTask{t}, a) }
	}
	for number, serve := range wait.Calls {
		served[number] = func(t *Task, a call.Args) (uint64, linux.Errno) { return serve(callTask{t}, a) }
	}
	for number, serve := range futexcall.Calls {
		served[number] = func(t *Task, a call.Args) (uint64, linux.Errno) {
			return serve(t.process.system.futexes, callTask{t}, a)
		}
	}
	for number, serve := range mount.Calls {
		served[number] = func(t *Task, a call.Args) (uint64, linux.Errno) { return serve(t.caller, a) }
	}
	served[linux.SYS_PTRACE] = func(t *Task, a call.Args) (uint64, linux.Errno) { return trace.Call(traceTask{t}, a) }
	served[linux.SYS_SECCOMP] = func(t *Task, a call.Args) (uint64, linux.Errno) { return seccomp.Call(callTask{t}, a) }
	served[linux.SYS_RSEQ] = func(t *Task, a call.Args) (uint64, linux.Errno) { return rseq.Call(callTask{t}, a) }
	for number := range served {
		if ipc.Serves(number) {
			served[number] = func(t *Task, a call.Args) (uint64, linux.Errno) {
				return t.process.system.ipc.Call(callTask{t}, number, a)
			}
		}
	}
}

// call executes the system call with a number. Only the lower 32 bits of the number count.
func (t *Task) call(number uint64, a call.Args) (uint64, linux.Errno) {
	if number &= 1<<32 - 1; number >= call.Numbers {
		return 0, linux.ENOSYS
	}
	if serve := served[number]; serve != nil {
		return serve(t, a)
	}
	r := personality[number]
	if r == nil {
		return 0, linux.ENOSYS
	}
	if r.Serve == nil {
		return 0, r.Errno
	}
	masked := false
	if kinds[number]&masks != 0 {
		var errno linux.Errno
		if masked, errno = t.maskFor(number, a); errno != 0 {
			return 0, errno
		}
	}
	n, errno := r.Serve(t.caller, a)
	if masked && errno != linux.EINTR {
		t.unmask()
	}
	switch {
	case errno == 0 && kinds[number] == 0:
	case errno == 0:
		t.countTransfer(kinds[number], n)
	case errno == linux.EPIPE:
		t.pipeSignal(number, a)
	case errno == linux.EFBIG && t.caller.Process.LimitsFileSize():
		t.sendOwn(linux.SIGXFSZ)
	}
	return n, errno
}

// maskFor sets the signal mask that a call uses during its wait (ppoll(2), pselect(2), epoll_pwait(2)), and reports
// whether the call has such a mask. If the call returns EINTR, Task.attend restores the old mask.
func (t *Task) maskFor(number uint64, a call.Args) (bool, linux.Errno) {
	addr, size := uint64(0), uint64(setSize)
	switch number {
	case linux.SYS_PPOLL:
		addr, size = a.A4, a.A5
	case linux.SYS_EPOLL_PWAIT, linux.SYS_EPOLL_PWAIT2:
		addr, size = a.A5, a.A6
	case linux.SYS_PSELECT6: // the last argument points to the address and the size of the mask
		if a.A6 == 0 {
			return false, 0
		}
		var errno linux.Errno
		if addr, errno = t.caller.Memory.Pointer(a.A6); errno == 0 {
			size, errno = t.caller.Memory.Pointer(a.A6 + 8)
		}
		if errno != 0 {
			return false, errno
		}
	}
	if addr == 0 {
		return false, 0
	}
	set, errno := t.set(addr, size)
	if errno == 0 {
		t.suspend(set)
	}
	return errno == 0, errno
}

// unmask restores the signal mask that was in force before a call of maskFor.
func (t *Task) unmask() {
	t.signals.Resume()
	t.suspended = false
}

// pipeSignal sends SIGPIPE for a write without a reader (pipe(7)), unless the call has MSG_NOSIGNAL.
func (t *Task) pipeSignal(number uint64, a call.Args) {
	flags := uint64(0)
	switch number {
	case linux.SYS_SENDTO, linux.SYS_SENDMMSG:
		flags = a.A4
	case linux.SYS_SENDMSG:
		flags = a.A3
	case linux.SYS_WRITE, linux.SYS_WRITEV, linux.SYS_PWRITEV2, linux.SYS_SENDFILE, linux.SYS_SPLICE, linux.SYS_TEE, linux.SYS_VMSPLICE:
	default:
		return
	}
	if flags&linux.MSG_NOSIGNAL == 0 {
		t.sendOwn(linux.SIGPIPE)
	}
}

// sendOwn sends a signal to the task itself, on behalf of the kernel.
func (t *Task) sendOwn(n signal.Number) {
	t.lockToSend()
	defer t.unlockSent()
	t.process.send(t, signal.Info{Signal: n, Code: signal.CodeKernel})
}

// await waits until ready is closed or receives a value, until a duration (the parameter most) has passed, or until a
// request for the task arrives (alert). Errors: ETIMEDOUT, EINTR.
func (t *Task) await(ready <-chan struct{}, most time.Duration) linux.Errno {
	switch t.caller.Process.Waiting().WaitFor(ready, most) {
	case file.Late:
		return linux.ETIMEDOUT
	case file.Interrupted:
		return linux.EINTR
	}
	return 0
}

// forever is the time of a wait without a limit.
const forever time.Duration = -1

// number returns the int in the lower half of a register.
func number(a uint64) int { return int(int32(a)) }

// read decodes a structure in the memory of the process.
func read[T any](t *Task, addr uint64, size int, decode func([]byte) T) (T, linux.Errno) {
	b := t.buffer(size)
	if errno := t.caller.Memory.Read(b, addr); errno != 0 {
		var none T
		return none, errno
	}
	return decode(b), 0
}

// put writes a structure to the memory of the process, unless the address is 0.
func (t *Task) put(addr uint64, size int, encode func([]byte)) linux.Errno {
	if addr == 0 {
		return 0
	}
	b := t.buffer(size)
	clear(b)
	encode(b)
	return t.caller.Memory.Write(addr, b)
}

// buffer returns a buffer for a structure, with undefined content. It is valid until the next call of buffer.
func (t *Task) buffer(size int) []byte {
	if size > len(t.scratch) {
		return make([]byte, size)
	}
	return t.scratch[:size]
}

// miscCalls are the calls that belong to no other group.
var miscCalls = map[int]serveFunc{
	linux.SYS_GETRANDOM:     func(t *Task, a call.Args) (uint64, linux.Errno) { return call.GetRandom(t.caller.Memory, a) },
	linux.SYS_SYSINFO:       sysinfo,
	linux.SYS_SETHOSTNAME:   setName((*posix.Process).SetHostname),
	linux.SYS_SETDOMAINNAME: setName((*posix.Process).SetDomainName),
	linux.SYS_VHANGUP:       vhangup,
	linux.SYS_MEMBARRIER:    membarrier,
}

// setName returns the implementation of sethostname(2) or setdomainname(2). The function set stores the new name. There
// is one name for all processes. Errors: EPERM, EINVAL, EFAULT.
func setName(set func(p *posix.Process, name string)) serveFunc {
	return func(t *Task, a call.Args) (uint64, linux.Errno) {
		n := number(a.A2)
		switch {
		case !t.creds().Has(linux.CAP_SYS_ADMIN):
			return 0, linux.EPERM
		case n < 0 || n > linux.NameMax:
			return 0, linux.EINVAL
		}
		name := make([]byte, n)
		errno := t.caller.Memory.Read(name, a.A1)
		if errno == 0 {
			set(t.caller.Process, string(name))
		}
		return 0, errno
	}
}
