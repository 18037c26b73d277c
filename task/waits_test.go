package task

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"loam/abi/linux"
)

// These tests check that every wait of a thread, which uses file.Task.Wait, ends by its event, its timeout, a
// signal, and the death of the thread.

// Addresses in the program's memory that the tests pass to calls that wait.
const (
	bufferAt  = dataAt + 0x1000
	waitvAt   = dataAt + 0x1400
	maskAt    = dataAt + 0x1480
	secondAt  = dataAt + 0x1500
	nameAt    = dataAt + 0x1600
	structAt  = dataAt + 0x1700
	waitWord  = dataAt + 0x1800
	anyOf     = 1<<64 - 1
	sysVFlags = linux.IPC_CREAT | 0o600
)

// prepare stores arguments that several waits use.
func prepare(u *user) {
	second(u, secondAt)
	u.text(nameAt, "/queue")
	le := binary.LittleEndian
	w := le.AppendUint64(nil, 0) // struct futex_waitv
	w = le.AppendUint64(w, waitWord)
	const size32 = 2
	u.store(waitvAt, le.AppendUint64(w, size32))
	u.store(maskAt, make([]byte, 8))
}

// opened makes a system call that opens a file, and returns the descriptor.
func opened(u *user, number int, args ...uint64) uint64 { return uint64(u.call(number, args...)) }

// pair returns a pair of connected sockets, or of the ends of a pipe.
func pair(u *user, number int, args ...uint64) (a, b uint64) {
	u.call(number, append(args, structAt)...)
	return uint64(u.load32(structAt)), uint64(u.load32(structAt + 4))
}

// endless are calls that wait until a signal arrives.
var endless = map[string]func(u *user) int64{
	"pause":           func(u *user) int64 { return u.call(linux.SYS_PAUSE) },
	"sigsuspend":      func(u *user) int64 { return u.call(linux.SYS_RT_SIGSUSPEND, maskAt, 8) },
	"sigtimedwait":    func(u *user) int64 { return u.call(linux.SYS_RT_SIGTIMEDWAIT, maskAt, 0, 0, 8) },
	"futex":           func(u *user) int64 { return u.call(linux.SYS_FUTEX, waitWord, linux.FUTEX_WAIT, 0, 0) },
	"futex with bits": func(u *user) int64 { return u.call(linux.SYS_FUTEX, waitWord, linux.FUTEX_WAIT_BITSET, 0, 0, 0, 1) },
	"futex_waitv":     func(u *user) int64 { return u.call(linux.SYS_FUTEX_WAITV, waitvAt, 1, 0, 0, 0) },
	"wait4": func(u *user) int64 {
		u.fork(3)
		return u.call(linux.SYS_WAIT4, anyOf, 0, 0, 0)
	},
	"waitid": func(u *user) int64 {
		u.fork(3)
		return u.call(linux.SYS_WAITID, linux.P_ALL, 0, 0, linux.WEXITED, 0)
	},
	"nanosleep": func(u *user) int64 {
		u.store32(structAt, 1000)
		u.store(structAt+4, make([]byte, 12))
		return u.call(linux.SYS_NANOSLEEP, structAt, 0)
	},
	"a pipe": func(u *user) int64 {
		r, _ := pair(u, linux.SYS_PIPE)
		return u.call(linux.SYS_READ, r, bufferAt, 8)
	},
	"a FIFO": func(u *user) int64 {
		u.call(linux.SYS_MKNOD, nameAt, linux.S_IFIFO|0o600, 0)
		return u.call(linux.SYS_OPEN, nameAt, linux.O_RDONLY, 0)
	},
	"a socket": func(u *user) int64 {
		a, _ := pair(u, linux.SYS_SOCKETPAIR, linux.AF_UNIX, linux.SOCK_STREAM, 0)
		return u.call(linux.SYS_RECVFROM, a, bufferAt, 8, 0, 0, 0)
	},
	"poll":   func(u *user) int64 { return u.call(linux.SYS_POLL, 0, 0, anyOf) },
	"select": func(u *user) int64 { return u.call(linux.SYS_SELECT, 0, 0, 0, 0, 0) },
	"ppoll":  func(u *user) int64 { return u.call(linux.SYS_PPOLL, 0, 0, 0, maskAt, 8) },
	"epoll": func(u *user) int64 {
		return u.call(linux.SYS_EPOLL_WAIT, opened(u, linux.SYS_EPOLL_CREATE1, 0), bufferAt, 1, anyOf)
	},
	"eventfd": func(u *user) int64 { return u.call(linux.SYS_READ, opened(u, linux.SYS_EVENTFD2, 0, 0), bufferAt, 8) },
	"timerfd": func(u *user) int64 {
		return u.call(linux.SYS_READ, opened(u, linux.SYS_TIMERFD_CREATE, linux.CLOCK_MONOTONIC, 0), bufferAt, 8)
	},
	"signalfd": func(u *user) int64 {
		return u.call(linux.SYS_READ, opened(u, linux.SYS_SIGNALFD4, anyOf, maskAt, 8, 0), bufferAt, 128)
	},
	"inotify": func(u *user) int64 {
		return u.call(linux.SYS_READ, opened(u, linux.SYS_INOTIFY_INIT1, 0), bufferAt, 64)
	},
	"flock": func(u *user) int64 {
		const exclusive = linux.LOCK_EX
		u.call(linux.SYS_FLOCK, opened(u, linux.SYS_OPEN, nameAt, linux.O_CREAT|linux.O_RDWR, 0o600), exclusive)
		return u.call(linux.SYS_FLOCK, opened(u, linux.SYS_OPEN, nameAt, linux.O_RDWR, 0), exclusive)
	},
	"msgrcv": func(u *user) int64 {
		return u.call(linux.SYS_MSGRCV, opened(u, linux.SYS_MSGGET, linux.IPC_PRIVATE, sysVFlags), bufferAt, 8, 0, 0)
	},
	"semop": func(u *user) int64 {
		u.store(structAt, []byte{0, 0, 0xff, 0xff, 0, 0}) // struct sembuf: decrement semaphore 0, whose value is 0
		return u.call(linux.SYS_SEMOP, opened(u, linux.SYS_SEMGET, linux.IPC_PRIVATE, 1, sysVFlags), structAt, 1)
	},
	"mq_receive": func(u *user) int64 {
		fd := opened(u, linux.SYS_MQ_OPEN, nameAt+1, linux.O_CREAT|linux.O_RDWR, 0o600, 0)
		return u.call(linux.SYS_MQ_TIMEDRECEIVE, fd, bufferAt, 8192, 0, 0)
	},
}

// A signal with a handler ends each wait with EINTR, and SIGKILL ends the next one with the process.
func TestSignalsAndDeathEndWaits(t *testing.T) {
	for name, wait := range endless {
		t.Run(name, func(t *testing.T) {
			var handled, result atomic.Int64
			run(t, func(u *user) {
				child := u.fork(1)
				sleep := func() { u.call(linux.SYS_NANOSLEEP, second(u, secondAt), 0) }
				sleep()
				is(t, "signal", u.call(linux.SYS_KILL, uint64(child), linux.SIGUSR1), 0)
				sleep()
				is(t, "handlers", handled.Load(), 1)
				is(t, "result", result.Load(), failed(linux.EINTR))
				is(t, "kill", u.call(linux.SYS_KILL, uint64(child), linux.SIGKILL), 0)
				is(t, "wait", u.call(linux.SYS_WAIT4, uint64(child), dataAt, 0, 0), child)
				is(t, "status", int64(u.load32(dataAt)), linux.SIGKILL)
				exit(u, 0)
			}, func(u *user) {
				prepare(u)
				install(u, linux.SIGUSR1, 2, 0)
				result.Store(wait(u))
				wait(u)
				t.Error("the second wait has ended, too")
			}, func(*user) { handled.Add(1) },
				func(u *user) { u.call(linux.SYS_PAUSE) })
		})
	}
}

// Each wait with a limit of time ends after exactly that time, with the result of the call for a timeout.
func TestTimeEndsWaits(t *testing.T) {
	for name, c := range map[string]struct {
		wait func(u *user) int64
		want int64
	}{
		"nanosleep":    {func(u *user) int64 { return u.call(linux.SYS_NANOSLEEP, secondAt, 0) }, 0},
		"sigtimedwait": {func(u *user) int64 { return u.call(linux.SYS_RT_SIGTIMEDWAIT, maskAt, 0, secondAt, 8) }, failed(linux.EAGAIN)},
		"futex":        {func(u *user) int64 { return u.call(linux.SYS_FUTEX, waitWord, linux.FUTEX_WAIT, 0, secondAt) }, failed(linux.ETIMEDOUT)},
		"futex_waitv": {func(u *user) int64 {
			return u.call(linux.SYS_FUTEX_WAITV, waitvAt, 1, 0, secondAt, linux.CLOCK_MONOTONIC)
		}, failed(linux.ETIMEDOUT)},
		"poll":   {func(u *user) int64 { return u.call(linux.SYS_POLL, 0, 0, 1000) }, 0},
		"ppoll":  {func(u *user) int64 { return u.call(linux.SYS_PPOLL, 0, 0, secondAt, 0, 8) }, 0},
		"select": {func(u *user) int64 { return u.call(linux.SYS_SELECT, 0, 0, 0, 0, secondAt) }, 0},
		"epoll": {func(u *user) int64 {
			return u.call(linux.SYS_EPOLL_WAIT, opened(u, linux.SYS_EPOLL_CREATE1, 0), bufferAt, 1, 1000)
		}, 0},
		"semtimedop": {func(u *user) int64 {
			u.store(structAt, []byte{0, 0, 0xff, 0xff, 0, 0})
			return u.call(linux.SYS_SEMTIMEDOP, opened(u, linux.SYS_SEMGET, linux.IPC_PRIVATE, 1, sysVFlags), structAt, 1, secondAt)
		}, failed(linux.EAGAIN)},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(u *user) {
				prepare(u)
				began := time.Now()
				is(t, "result", c.wait(u), c.want)
				is(t, "time", int64(time.Since(began)), int64(time.Second))
				exit(u, 0)
			})
		})
	}
}
