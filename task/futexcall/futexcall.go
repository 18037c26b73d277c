// Package futexcall implements the calls on futexes (futex(2), futex_waitv(2)): locks of programs, for which the kernel keeps only
// the queues of threads that wait. Package futex has the queues. A thread that waits is a parked goroutine, as in every wait.
//
// futexcall.go has the table of calls; wait.go has plain futexes, waitv.go waits for several, lock.go priority inheritance, and
// robust.go the locks of threads that end. word.go accesses the words in the memory of a process, and bucket.go has the queues
// and their locks.
package futexcall

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/file"
	"loam/task/futex"
)

// Thread is the state of a thread for these calls.
type Thread struct {
	// waiter waits for a futex. Its channel is the bell of the thread's file.Interrupt, because the runtime waits for one
	// channel with much less work than for two. So a value in the channel alone means only that the thread has to look again.
	waiter waiter
	robust uint64 // address of the list of robust futexes; 0: none. Accessed atomically
	left   bool   // the thread has ended and owns no PI futex any more; guarded by locks.mu
}

// Init prepares the state of a new thread, which waits with i.
func (t *Thread) Init(i *file.Interrupt) { t.waiter.Woken = i.Bell() }

// RobustHeadSize is the size of a struct robust_list_head.
const RobustHeadSize = 24

// RobustList returns the address that the thread has passed to set_robust_list(2).
func (t *Thread) RobustList() uint64 { return atomic.LoadUint64(&t.robust) }

// Caller is a thread that makes a futex call.
type Caller interface {
	// ID returns the ID of the thread, and Futexes its state for this package.
	ID() int32
	Futexes() *Thread
	// RobustListOf returns the address of the robust list of a thread; the ID 0 means this thread. Errors: ESRCH, EPERM.
	RobustListOf(id uint64) (uint64, linux.Errno)
	// Priority returns the static priority of the thread.
	Priority() int
	// Map and Memory return the memory of the process.
	Map() *mem.Map
	Memory() call.Memory
	// Load reads an aligned word of the process. Errors: EFAULT.
	Load(addr uint64) (value uint32, errno linux.Errno)
	// Swap replaces an aligned word of the process if its value is old, atomically with instructions of the process, and returns
	// the value found. Errors: EFAULT.
	Swap(addr uint64, old, value uint32) (found uint32, errno linux.Errno)
	// Await waits until ready receives a value, or until the time most has passed unless that is negative. Errors: ETIMEDOUT, EINTR.
	Await(ready <-chan struct{}, most time.Duration) linux.Errno
	// Duration reads a struct timespec. Errors: EFAULT, EINVAL.
	Duration(addr uint64) (time.Duration, linux.Errno)
	// Clock returns the time of a clock in nanoseconds. Errors: EINVAL.
	Clock(id int) (int64, linux.Errno)
}

// task is a futex call in progress.
type task struct {
	Caller
	*Objects
}

// forever is the time of a wait without a limit.
const forever time.Duration = -1

// number returns the int in the lower half of a register.
func number(a uint64) int { return int(int32(a)) }

// Serve executes a futex call.
type Serve func(o *Objects, c Caller, a call.Args) (uint64, linux.Errno)

// Calls are the calls of this package, by number.
var Calls = map[int]Serve{
	linux.SYS_FUTEX: func(o *Objects, c Caller, a call.Args) (uint64, linux.Errno) { return task{c, o}.call(a) },
	linux.SYS_FUTEX_WAITV: func(o *Objects, c Caller, a call.Args) (uint64, linux.Errno) {
		return task{c, o}.waitAny(a)
	},
	linux.SYS_SET_ROBUST_LIST: func(_ *Objects, c Caller, a call.Args) (uint64, linux.Errno) {
		if a.A2 != RobustHeadSize {
			return 0, linux.EINVAL
		}
		atomic.StoreUint64(&c.Futexes().robust, a.A1)
		return 0, 0
	},
	linux.SYS_GET_ROBUST_LIST: func(_ *Objects, c Caller, a call.Args) (uint64, linux.Errno) {
		list, errno := c.RobustListOf(a.A1)
		if errno == 0 {
			errno = c.Memory().Write(a.A3, binary.LittleEndian.AppendUint64(nil, RobustHeadSize))
		}
		if errno == 0 {
			errno = c.Memory().Write(a.A2, binary.LittleEndian.AppendUint64(nil, list))
		}
		return 0, errno
	},
}

// realtime holds the operations of futex(2) that may have FUTEX_CLOCK_REALTIME.
const realtime = 1<<linux.FUTEX_WAIT | 1<<linux.FUTEX_WAIT_BITSET | 1<<linux.FUTEX_WAIT_REQUEUE_PI | 1<<linux.FUTEX_LOCK_PI2

// call implements futex(2).
func (t task) call(a call.Args) (uint64, linux.Errno) {
	private := a.A2&linux.FUTEX_PRIVATE_FLAG != 0
	const four = 4
	if a.A1%four != 0 {
		return 0, linux.EINVAL
	}
	key, ok := t.Map().Locate(a.A1, private)
	if !ok {
		return 0, linux.EFAULT
	}
	operation := uint32(a.A2) &^ (linux.FUTEX_PRIVATE_FLAG | linux.FUTEX_CLOCK_REALTIME)
	if a.A2&linux.FUTEX_CLOCK_REALTIME != 0 && realtime>>operation&1 == 0 {
		return 0, linux.ENOSYS
	}
	switch operation {
	case linux.FUTEX_WAIT:
		return t.wait(key, a, false, futex.AnyBit)
	case linux.FUTEX_WAIT_BITSET:
		return t.wait(key, a, true, uint32(a.A6))
	case linux.FUTEX_WAKE:
		return t.wake(key, a, futex.AnyBit)
	case linux.FUTEX_WAKE_BITSET:
		return t.wake(key, a, uint32(a.A6))
	case linux.FUTEX_REQUEUE:
		return t.requeue(key, a, private, false)
	case linux.FUTEX_CMP_REQUEUE:
		return t.requeue(key, a, private, true)
	case linux.FUTEX_WAKE_OP:
		return t.wakeOp(key, a, private)
	case linux.FUTEX_LOCK_PI:
		return t.lock(key, a, linux.CLOCK_REALTIME, false)
	case linux.FUTEX_TRYLOCK_PI:
		return t.lock(key, a, linux.CLOCK_REALTIME, true)
	case linux.FUTEX_LOCK_PI2:
		return t.lock(key, a, clockOf(a), false)
	case linux.FUTEX_UNLOCK_PI:
		return t.unlock(key, a)
	case linux.FUTEX_WAIT_REQUEUE_PI:
		return t.waitRequeue(key, a, private)
	case linux.FUTEX_CMP_REQUEUE_PI:
		return t.requeueLock(key, a, private)
	}
	return 0, linux.ENOSYS
}

// clockOf returns the clock that an absolute timeout of the call refers to.
func clockOf(a call.Args) int {
	if a.A2&linux.FUTEX_CLOCK_REALTIME != 0 {
		return linux.CLOCK_REALTIME
	}
	return linux.CLOCK_MONOTONIC
}

// until returns the duration from now to the absolute time in the struct timespec at addr, on the given clock.
// For the address 0 it returns forever. Errors: EFAULT, EINVAL.
func (t task) until(addr uint64, clock int) (time.Duration, linux.Errno) {
	if addr == 0 {
		return forever, 0
	}
	until, errno := t.Duration(addr)
	if errno != 0 {
		return 0, errno
	}
	now, _ := t.Clock(clock)
	return max(until-time.Duration(now), 0), 0
}
