package call

import (
	"os"
	"strconv"
	"testing"

	"loam/abi/linux"
)

// absent is the ID of a process that does not exist.
const absent = 1<<22 + 5

// The scheduling of a process can be read. The priorities of policies have limits.
func TestSchedulingAsOnLinux(t *testing.T) {
	s := &sequence{}
	const room = 0x1000
	for _, pid := range []uint64{0, absent, minus} {
		s.call(linux.SYS_SCHED_GETSCHEDULER, pid)
		s.call(linux.SYS_SCHED_GETPARAM, pid, at(room))
		s.call(linux.SYS_SCHED_GETPARAM, pid, 0)
		s.call(linux.SYS_SCHED_GETPARAM, pid, noAddress)
		s.call(linux.SYS_SCHED_SETPARAM, pid, 0)
		s.call(linux.SYS_SCHED_SETPARAM, pid, noAddress)
		s.call(linux.SYS_SCHED_RR_GET_INTERVAL, pid, at(room))
		s.hide(room, 16)
		for _, size := range []uint64{0, 47, 48, 56, 4096, 5000} {
			s.call(linux.SYS_SCHED_GETATTR, pid, at(room), size, 0)
			s.hide(room, 64) // fields that newer releases add, and the slice of the thread
			s.call(linux.SYS_SCHED_GETATTR, pid, at(room), size, 1)
		}
		s.call(linux.SYS_SCHED_GETATTR, pid, 0, 48, 0)
	}
	for policy := range uint64(7) { // Linux 6.12 has an eighth
		s.call(linux.SYS_SCHED_GET_PRIORITY_MAX, policy)
		s.call(linux.SYS_SCHED_GET_PRIORITY_MIN, policy)
	}
	s.call(linux.SYS_SCHED_GET_PRIORITY_MAX, minus)
	s.int32(0x100, 99)
	for _, policy := range []uint64{99, 7, minus} {
		s.call(linux.SYS_SCHED_SETSCHEDULER, 0, policy, at(0x100))
		s.call(linux.SYS_SCHED_SETSCHEDULER, 0, policy, 0)
	}
	s.call(linux.SYS_SCHED_SETSCHEDULER, 0, 0, at(0x100)) // a priority that the policy does not have
	asOnLinux(t, s)
}

// Waits for children of a process without children, and calls about one process.
func TestProcessesAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "x")
	const hang, untraced, exited = 1, 2, 4
	for _, options := range []uint64{0, hang, hang | untraced, exited, 1 << 20, minus} {
		s.call(linux.SYS_WAIT4, absent, 0, options, 0)
	}
	for _, kind := range []uint64{0, 1, 2, 3, 4, minus} {
		for _, id := range []uint64{absent, 0, minus} {
			if kind == 0 || kind == 2 || kind == 3 && id == 0 {
				continue // this process may have children, and descriptor 0
			}
			s.call(linux.SYS_WAITID, kind, id, 0, exited|hang, 0)
			s.call(linux.SYS_WAITID, kind, id, 0, hang, 0)
			s.call(linux.SYS_WAITID, kind, id, 0, 1<<20|exited, 0)
		}
	}
	s.call(linux.SYS_WAITID, 3, f, 0, exited, 0)
	s.call(linux.SYS_WAITID, 3, none, 0, exited, 0)
	s.call(linux.SYS_PERSONALITY, 1<<32-1)
	s.call(linux.SYS_UNSHARE, 1<<40)
	s.call(linux.SYS_UNSHARE, 0)
	s.call(linux.SYS_SETNS, f, 0)
	s.call(linux.SYS_SETNS, none, 0)
	s.call(linux.SYS_PIDFD_OPEN, absent, 0)
	s.call(linux.SYS_PIDFD_OPEN, 0, 0)
	s.call(linux.SYS_PIDFD_OPEN, minus, 0)
	s.call(linux.SYS_PIDFD_OPEN, absent, 1<<5)
	s.call(linux.SYS_PIDFD_SEND_SIGNAL, f, 0, 0, 0)
	s.call(linux.SYS_PIDFD_SEND_SIGNAL, none, 0, 0, 0)
	s.call(linux.SYS_PIDFD_SEND_SIGNAL, f, 0, 0, 1<<10)
	s.call(linux.SYS_PIDFD_GETFD, f, 0, 0)
	s.call(linux.SYS_PIDFD_GETFD, none, 0, 0)
	s.call(linux.SYS_PIDFD_GETFD, f, 0, 1)
	for _, flags := range []uint64{0, 1, 4, 5, 8, minus} {
		s.call(linux.SYS_MSYNC, at(0), 4096, flags)
	}
	s.call(linux.SYS_MSYNC, at(8), 4096, 4)
	s.call(linux.SYS_UNAME, noAddress)
	asOnLinux(t, s)
}

// Timers that send no signal: their settings are checked and returned.
func TestSignalTimersAsOnLinux(t *testing.T) {
	s := &sequence{}
	const event, id, value, old = 0x100, 0x180, 0x200, 0x280
	const silent = 1 // SIGEV_NONE
	create := func(clock, notify, number uint64) {
		s.word(event, 0, number|notify<<32, 0)
		s.call(linux.SYS_TIMER_CREATE, clock, at(event), at(id))
		s.hide(id, 4)
	}
	create(99, silent, 0)
	create(linux.CLOCK_MONOTONIC, 9, 10)
	create(linux.CLOCK_MONOTONIC, 0, 99)
	s.word(event, 0, silent<<32, 0)
	s.call(linux.SYS_TIMER_CREATE, linux.CLOCK_MONOTONIC, at(event), noAddress)
	s.call(linux.SYS_TIMER_CREATE, linux.CLOCK_MONOTONIC, noAddress, at(id))
	for _, timer := range []uint64{absent, minus} {
		s.call(linux.SYS_TIMER_SETTIME, timer, 0, at(value), at(old))
		s.call(linux.SYS_TIMER_GETTIME, timer, at(old))
		s.call(linux.SYS_TIMER_GETOVERRUN, timer)
		s.call(linux.SYS_TIMER_DELETE, timer)
	}
	s.call(linux.SYS_TIMER_SETTIME, absent, 0, 0, 0)
	s.call(linux.SYS_TIMER_SETTIME, absent, 0, noAddress, 0)
	for _, which := range []uint64{3, 99, minus} {
		s.call(linux.SYS_GETITIMER, which, at(old))
		s.call(linux.SYS_SETITIMER, which, at(value), at(old))
	}
	for _, c := range [][4]uint64{{0, 1e6, 0, 0}, {0, minus, 0, 0}, {minus, 0, 0, 0}, {0, 0, 0, 1e6}, {0, 0, minus, 0}} {
		s.word(value, c[:]...)
		s.call(linux.SYS_SETITIMER, linux.ITIMER_REAL, at(value), at(old))
	}
	s.call(linux.SYS_SETITIMER, linux.ITIMER_REAL, noAddress, at(old))
	s.call(linux.SYS_GETITIMER, linux.ITIMER_REAL, noAddress)
	s.call(linux.SYS_GETITIMER, linux.ITIMER_REAL, at(old))
	asOnLinux(t, s)
}

// POSIX message queues: sizes, priorities, and what an empty or a full queue returns.
func TestQueuesAsOnLinux(t *testing.T) {
	s := &sequence{}
	const attributes, room, timeout, priority = 0x100, 0x1000, 0x80, 0x90
	text := "loam-test-" + strconv.Itoa(os.Getpid())
	name := s.text(text)
	s.word(attributes, 0, 3, 16, 0, 0, 0, 0, 0)
	queue := s.open(linux.SYS_MQ_OPEN, name, linux.O_RDWR|linux.O_CREAT|linux.O_EXCL|linux.O_NONBLOCK, 0o600, at(attributes))
	s.call(linux.SYS_MQ_OPEN, name, linux.O_RDWR|linux.O_CREAT|linux.O_EXCL, 0o600, at(attributes))
	only := s.open(linux.SYS_MQ_OPEN, name, linux.O_RDONLY|linux.O_NONBLOCK, 0, 0)
	for _, bad := range [][2]uint64{{0, 16}, {3, 0}, {minus, 16}, {3, minus}, {1 << 40, 16}} {
		s.word(attributes+8, bad[:]...)
		s.call(linux.SYS_MQ_OPEN, s.text(text+"x"), linux.O_RDWR|linux.O_CREAT, 0o600, at(attributes))
		s.call(linux.SYS_MQ_UNLINK, s.text(text+"x"))
	}
	s.call(linux.SYS_MQ_OPEN, s.text(text+"absent"), linux.O_RDWR, 0, 0)
	s.call(linux.SYS_MQ_OPEN, noAddress, linux.O_RDWR, 0, 0)
	s.put(room, []byte("first second third")...)
	for _, c := range []struct{ size, priority uint64 }{{5, 1}, {16, 9}, {0, 9}, {3, 0}, {17, 0}, {5, 1 << 15}, {5, 1<<15 - 1}} {
		s.call(linux.SYS_MQ_TIMEDSEND, queue, at(room), c.size, c.priority, 0)
		s.call(linux.SYS_MQ_GETSETATTR, queue, 0, at(0x300))
	}
	s.call(linux.SYS_MQ_TIMEDSEND, only, at(room), 1, 0, 0)
	s.call(linux.SYS_MQ_TIMEDSEND, none, at(room), 1, 0, 0)
	s.call(linux.SYS_MQ_TIMEDRECEIVE, queue, at(0x2000), 15, at(priority), 0)
	for range 4 {
		s.call(linux.SYS_MQ_TIMEDRECEIVE, queue, at(0x2000), 100, at(priority), 0)
	}
	for _, c := range [][2]uint64{{minus, 0}, {0, 1e9}, {0, minus}} {
		s.word(timeout, c[:]...)
		s.call(linux.SYS_MQ_TIMEDSEND, queue, at(room), 1, 0, at(timeout))
		s.call(linux.SYS_MQ_TIMEDRECEIVE, queue, at(0x2000), 100, 0, at(timeout))
	}
	s.word(attributes, linux.O_NONBLOCK, 99, 99, 99)
	s.call(linux.SYS_MQ_GETSETATTR, queue, at(attributes), at(0x300))
	s.word(attributes, 1<<20)
	s.call(linux.SYS_MQ_GETSETATTR, queue, at(attributes), at(0x300))
	s.call(linux.SYS_MQ_GETSETATTR, none, 0, at(0x300))
	s.call(linux.SYS_MQ_NOTIFY, none, 0)
	s.call(linux.SYS_MQ_NOTIFY, queue, 0)
	s.call(linux.SYS_MQ_UNLINK, name)
	s.call(linux.SYS_MQ_UNLINK, name)
	s.call(linux.SYS_MQ_UNLINK, noAddress)
	asOnLinux(t, s)
}
