// Package wait implements the calls that wait for children: wait4(2) and waitid(2). Package family has the rules.
package wait

import (
	"encoding/binary"
	"math"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/account"
	"loam/task/family"
	"loam/task/signal"
)

// Caller is the thread that waits for a child.
type Caller interface {
	Memory() call.Memory
	// WaitFor waits for news of a child, unless poll is set. It returns the resources that the child and its own children have
	// used, or family.Nothing if there is no news. Errors: ECHILD, EINTR.
	WaitFor(of family.Selector, w Wanted, poll bool) (family.Report, *account.Usage, linux.Errno)
	// Watched returns the process of a pidfd, and whether the descriptor is non-blocking. Errors: EBADF.
	Watched(fd uint64) (pid family.PID, nonblocking bool, errno linux.Errno)
}

// Wanted is the set of events that a wait requests.
type Wanted struct {
	family.Wanted
	Own bool // __WNOTHREAD: threads that other threads of the process trace are not selected
}

// Serve executes a call that waits for children.
type Serve func(t Caller, a call.Args) (uint64, linux.Errno)

// Calls are the calls of this package, by number.
var Calls = map[int]Serve{linux.SYS_WAIT4: wait4, linux.SYS_WAITID: waitid}

// number returns the int in the lower half of a register.
func number(a uint64) int { return int(int32(a)) }

// put writes a structure to the memory of the process, unless the address is 0. Errors: EFAULT.
func put(t Caller, addr uint64, size int, encode func([]byte)) linux.Errno {
	if addr == 0 {
		return 0
	}
	b := make([]byte, size)
	encode(b)
	return t.Memory().Write(addr, b)
}

// threads are the flags that select children by their creator and their signal.
const threads = linux.WNOTHREAD | linux.WALL | linux.WCLONE

// wait4 implements wait4(2). Errors: EINVAL, ECHILD, EINTR, EFAULT.
func wait4(t Caller, a call.Args) (uint64, linux.Errno) {
	const known = linux.WNOHANG | linux.WUNTRACED | linux.WCONTINUED | threads
	options := number(a.A3)
	switch {
	case uint32(options)&^known != 0:
		return 0, linux.EINVAL
	case number(a.A1) == math.MinInt32: // it has no opposite, so it selects no process group
		return 0, linux.ESRCH
	}
	w := Wanted{Own: options&linux.WNOTHREAD != 0}
	w.Wanted = family.Wanted{Exited: true, Stopped: options&linux.WUNTRACED != 0, Continued: options&linux.WCONTINUED != 0}
	w.All, w.Clones = options&linux.WALL != 0, options&linux.WCLONE != 0
	r, used, errno := t.WaitFor(family.Selector(number(a.A1)), w, options&linux.WNOHANG != 0)
	if errno != 0 || r.Event == family.Nothing {
		return 0, errno
	}
	status := r.Status
	switch r.Event {
	case family.Stopped, family.Trapped:
		status = status<<8 | 0x7f
	case family.Continued:
		status = 0xffff
	}
	if errno := put(t, a.A2, 4, func(b []byte) { binary.LittleEndian.PutUint32(b, uint32(status)) }); errno != 0 {
		return 0, errno
	}
	if errno := put(t, a.A4, account.Size, used.Put); errno != 0 {
		return 0, errno
	}
	return uint64(r.PID), 0
}

// waitid implements waitid(2). Errors: EINVAL, ECHILD, EBADF, EAGAIN, EINTR, EFAULT.
func waitid(t Caller, a call.Args) (uint64, linux.Errno) {
	const events = linux.WEXITED | linux.WSTOPPED | linux.WCONTINUED
	options := number(a.A4)
	if uint32(options)&^(linux.WNOHANG|linux.WNOWAIT|events|threads) != 0 || options&events == 0 {
		return 0, linux.EINVAL
	}
	of, nonblocking, errno := selector(t, a)
	if errno != 0 {
		return 0, errno
	}
	unready := nonblocking && options&linux.WNOHANG == 0 // with PIDFD_NONBLOCK, the call returns EAGAIN instead of a wait
	if unready {
		options |= linux.WNOHANG
	}
	w := Wanted{Own: options&linux.WNOTHREAD != 0}
	w.Wanted = family.Wanted{
		Exited: options&linux.WEXITED != 0, Stopped: options&linux.WSTOPPED != 0,
		Continued: options&linux.WCONTINUED != 0, Keep: options&linux.WNOWAIT != 0,
	}
	w.All, w.Clones = options&linux.WALL != 0, options&linux.WCLONE != 0
	r, used, errno := t.WaitFor(of, w, options&linux.WNOHANG != 0)
	if errno == 0 && unready && r.Event == family.Nothing {
		errno = linux.EAGAIN
	}
	if errno != 0 {
		return 0, errno
	}
	if errno := put(t, a.A5, account.Size, used.Put); errno != 0 && r.Event != family.Nothing {
		return 0, errno
	}
	return 0, put(t, a.A3, signal.InfoSize, func(b []byte) {
		if r.Event != family.Nothing {
			info(r).Put(b)
		}
	})
}

// selector returns the children for which waitid(2) waits, and whether they are named by a non-blocking pidfd. Errors: EINVAL, EBADF.
func selector(t Caller, a call.Args) (of family.Selector, nonblocking bool, errno linux.Errno) {
	const any = -1
	of = family.Selector(number(a.A2))
	switch number(a.A1) {
	case linux.P_ALL:
		return any, false, 0
	case linux.P_PID:
		if of > 0 {
			return of, false, 0
		}
	case linux.P_PGID:
		if of >= 0 {
			return -of, false, 0
		}
	case linux.P_PIDFD:
		pid, nonblocking, errno := t.Watched(a.A2)
		return family.Selector(pid), nonblocking, errno
	}
	return 0, false, linux.EINVAL
}

// info returns the siginfo_t that waitid(2) stores for a report.
func info(r family.Report) signal.Info {
	i := signal.Info{Signal: signal.Child, PID: int32(r.PID), Status: r.Status}
	switch r.Event {
	case family.Stopped:
		i.Code = signal.ChildStopped
	case family.Trapped:
		i.Code = signal.ChildTrapped
	case family.Continued:
		i.Code, i.Status = signal.ChildContinued, int32(signal.Continue)
	default:
		if i.Code = signal.ChildCode(r.Status); i.Code == signal.ChildExited {
			i.Status >>= 8
		} else {
			i.Status &= 0x7f
		}
	}
	return i
}
