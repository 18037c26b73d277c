package call

import (
	"testing"

	"loam/abi/linux"
)

// poll(2) reports events of pipes and sockets, and descriptors that are not open.
func TestPollAsOnLinux(t *testing.T) {
	s := &sequence{}
	read, write := s.pair(linux.SYS_PIPE2, 0, at(0), linux.O_NONBLOCK)
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0, at(0))
	f := s.file("file", "x")
	const list, timeout = 0x100, 0x80
	poll := func(n uint64) {
		const events = linux.POLLIN | linux.POLLOUT | linux.POLLPRI
		for i, fd := range []uint64{read, write, a, b, f, none, minus} {
			s.word(uint64(list+8*i), fd)
			s.put(uint64(list+8*i+4), events, 0, 0xff, 0xff) // the result is overwritten
		}
		s.call(linux.SYS_POLL, at(list), n, 0)
	}
	poll(7)
	s.call(linux.SYS_WRITE, write, at(0x400), 5)
	s.call(linux.SYS_WRITE, a, at(0x400), 5)
	poll(7)
	s.call(linux.SYS_WRITE, write, at(0x400), 15<<10)
	s.call(linux.SYS_SHUTDOWN, a, linux.SHUT_WR)
	poll(7)
	s.call(linux.SYS_CLOSE, a)
	s.call(linux.SYS_CLOSE, write)
	poll(7)
	s.call(linux.SYS_READ, read, at(0x1000), 12<<10)
	s.call(linux.SYS_READ, read, at(0x1000), 12<<10)
	s.call(linux.SYS_CLOSE, read)
	poll(7)
	poll(3)
	poll(0)
	s.call(linux.SYS_POLL, noAddress, 1, 0)
	s.call(linux.SYS_POLL, noAddress, 0, 0)
	s.call(linux.SYS_POLL, at(list), minus, 0)
	s.call(linux.SYS_POLL, at(list), 1<<30, 0)
	for _, spec := range [][2]uint64{{0, 0}, {0, 1}, {0, 1e9}, {0, minus}, {minus, 0}, {0, 1000}} {
		s.word(timeout, spec[0], spec[1])
		s.call(linux.SYS_PPOLL, at(list), 0, at(timeout), 0, 0)
		s.hide(timeout, 16) // the remaining time
		s.word(timeout, spec[0], spec[1])
		s.call(linux.SYS_PPOLL, at(list), 0, at(timeout), at(0x400), 7)
		s.hide(timeout, 16)
		s.word(timeout, spec[0], spec[1])
		s.call(linux.SYS_PPOLL, at(list), 0, at(timeout), noAddress, 8)
		s.hide(timeout, 16)
	}
	s.call(linux.SYS_PPOLL, at(list), 0, noAddress, 0, 0)
	asOnLinux(t, s)
}

// For most files, poll(2) reports POLLRDNORM with POLLIN, and POLLWRNORM with POLLOUT. For some files Linux reports neither.
// The test polls each file for all events, and then only for POLLRDNORM and POLLWRNORM, as varnish does after connect(2).
func TestPollNormalAsOnLinux(t *testing.T) {
	s := &sequence{}
	read, write := s.pair(linux.SYS_PIPE2, 0, at(0), linux.O_NONBLOCK)
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0, at(0))
	c, d := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_DGRAM|linux.SOCK_NONBLOCK, 0, at(0))
	udp := s.open(linux.SYS_SOCKET, linux.AF_INET, linux.SOCK_DGRAM, 0)
	tcp := s.open(linux.SYS_SOCKET, linux.AF_INET, linux.SOCK_STREAM, 0)
	count := s.open(linux.SYS_EVENTFD2, 1, 0)
	watch := s.open(linux.SYS_INOTIFY_INIT1, 0)
	f := s.file("file", "x")
	files := []uint64{read, write, a, b, c, d, udp, tcp, count, watch, f}
	poll := func(events uint16) {
		for i, fd := range files {
			s.word(uint64(0x100+8*i), fd)
			s.put(uint64(0x100+8*i+4), byte(events), byte(events>>8), 0, 0)
		}
		s.call(linux.SYS_POLL, at(0x100), uint64(len(files)), 0)
	}
	for _, events := range []uint16{0x3fff, 0x40, 0x80, 0x100, 0x200} {
		poll(events)
	}
	s.call(linux.SYS_WRITE, write, at(0x400), 5)
	s.call(linux.SYS_WRITE, a, at(0x400), 5)
	s.call(linux.SYS_WRITE, c, at(0x400), 5)
	for _, events := range []uint16{0x3fff, 0x40, 0x80, 0x100, 0x200} {
		poll(events)
	}
	asOnLinux(t, s)
}

// epoll_ctl(2) and epoll_wait(2): events, their data, and the errors of both.
func TestEpollAsOnLinux(t *testing.T) {
	s := &sequence{}
	set := s.open(linux.SYS_EPOLL_CREATE1, linux.EPOLL_CLOEXEC)
	other := s.open(linux.SYS_EPOLL_CREATE, 1)
	read, write := s.pair(linux.SYS_PIPE2, 0, at(0), linux.O_NONBLOCK)
	f := s.file("file", "x")
	const event, events = 0x100, 0x200
	control := func(fd, operation, target uint64, mask uint32, data uint64) {
		s.put(event, le.AppendUint64(le.AppendUint32(nil, mask), data)...)
		s.call(linux.SYS_EPOLL_CTL, fd, operation, target, at(event))
	}
	const add, remove, change = linux.EPOLL_CTL_ADD, linux.EPOLL_CTL_DEL, linux.EPOLL_CTL_MOD
	wait := func(n, timeout uint64) {
		s.call(linux.SYS_EPOLL_WAIT, set, at(events), n, timeout)
		s.call(linux.SYS_EPOLL_PWAIT, set, at(events), n, timeout, 0, 0)
	}
	control(set, add, read, linux.POLLIN, 11)
	control(set, add, read, linux.POLLIN, 11)
	control(set, add, write, linux.POLLOUT, 1<<63|22)
	control(set, change, f, linux.POLLIN, 33)
	control(set, add, f, linux.POLLIN, 33)
	control(set, remove, f, 0, 0)
	control(set, add, set, linux.POLLIN, 44)
	control(set, add, none, linux.POLLIN, 55)
	control(none, add, read, linux.POLLIN, 66)
	control(f, add, read, linux.POLLIN, 77)
	control(set, 9, read, linux.POLLIN, 88)
	control(other, add, set, linux.POLLIN, 99)
	control(set, add, other, linux.POLLIN, 99) // a loop
	control(set, add, other, linux.POLLIN|linux.EPOLLEXCLUSIVE, 99)
	control(set, change, other, linux.POLLIN|linux.EPOLLEXCLUSIVE, 99)
	control(set, remove, other, linux.EPOLLEXCLUSIVE, 99)
	wait(10, 0)
	s.call(linux.SYS_WRITE, write, at(0x400), 3)
	wait(1, 0)
	wait(1, 5)
	control(set, change, read, linux.POLLIN|linux.EPOLLONESHOT, 111)
	control(set, remove, write, 0, 0)
	wait(10, 0)
	control(set, change, read, linux.POLLIN|linux.EPOLLET, 112)
	wait(10, 0)
	s.call(linux.SYS_EPOLL_CTL, set, remove, read, 0)
	s.call(linux.SYS_EPOLL_CTL, set, remove, read, 0)
	s.call(linux.SYS_EPOLL_CTL, set, add, read, noAddress)
	for _, n := range []uint64{0, minus, 1 << 31, 1 << 29} {
		wait(n, 0)
	}
	control(set, add, write, linux.POLLOUT, 5)
	s.call(linux.SYS_EPOLL_WAIT, set, noAddress, 1, 0)
	s.call(linux.SYS_EPOLL_WAIT, none, at(events), 1, 0)
	s.call(linux.SYS_EPOLL_WAIT, f, at(events), 1, 0)
	s.call(linux.SYS_EPOLL_PWAIT, set, at(events), 1, 0, at(0x400), 7)
	s.call(linux.SYS_EPOLL_PWAIT, set, at(events), 1, 0, noAddress, 8)
	for _, spec := range [][2]uint64{{0, 0}, {0, 1e9}, {0, minus}, {minus, 0}, {1 << 40, 0}} {
		s.word(0x80, spec[0], spec[1])
		s.call(linux.SYS_EPOLL_PWAIT2, set, at(events), 1, at(0x80), 0, 0)
	}
	s.call(linux.SYS_EPOLL_PWAIT2, set, at(events), 1, noAddress, 0, 0)
	s.call(linux.SYS_EPOLL_PWAIT2, set, at(events), 1, 0, 0, 0)
	s.call(linux.SYS_EPOLL_CREATE, 0)
	s.call(linux.SYS_EPOLL_CREATE, minus)
	s.call(linux.SYS_EPOLL_CREATE1, 1)
	asOnLinux(t, s)
}

// select(2) takes times in microseconds and pselect6(2) in nanoseconds. Sets are checked up to the number of descriptors.
func TestSelectAsOnLinux(t *testing.T) {
	s := &sequence{}
	const sets, timeout = 0x100, 0x80
	for _, call := range []int{linux.SYS_SELECT, linux.SYS_PSELECT6} {
		for _, spec := range [][2]uint64{{0, 0}, {0, 1000}, {0, minus}, {minus, 0}, {0, 1e9}} {
			if call == linux.SYS_SELECT && spec[1] == 1e9 {
				continue // a thousand seconds
			}
			s.word(timeout, spec[0], spec[1])
			s.call(call, 0, 0, 0, 0, at(timeout), 0)
			s.hide(timeout, 16)
		}
		s.word(timeout, 0, 0)
		s.word(sets, 0, 0, 0, 0)
		for _, n := range []uint64{0, 1, 64, 65, minus, 1 << 31, 1<<31 - 1} {
			s.call(call, n, 0, 0, 0, at(timeout), 0)
			if n < 1<<30 {
				s.call(call, n, at(sets), at(sets+64), at(sets+128), at(timeout), 0)
			}
		}
		s.call(call, 1, noAddress, 0, 0, at(timeout), 0)
		s.call(call, 0, noAddress, 0, 0, at(timeout), 0)
		s.call(call, 1, 0, 0, 0, noAddress, 0)
	}
	asOnLinux(t, s)
}

// Timers that are read as files, and counters of events.
func TestTimersAsOnLinux(t *testing.T) {
	s := &sequence{}
	timer := s.open(linux.SYS_TIMERFD_CREATE, linux.CLOCK_MONOTONIC, linux.TFD_NONBLOCK)
	counter := s.open(linux.SYS_EVENTFD2, 5, linux.EFD_NONBLOCK)
	semaphore := s.open(linux.SYS_EVENTFD2, 2, linux.EFD_NONBLOCK|linux.EFD_SEMAPHORE)
	f := s.file("file", "x")
	const value, old, room = 0x100, 0x180, 0x200
	for _, fd := range []uint64{timer, counter, f, none} {
		for _, c := range [][4]uint64{{0, 0, 0, 0}, {100, 5, 200, 0}, {0, 0, 50, 1e9}, {0, 1e9, 50, 0}, {0, minus, 50, 0}, {minus, 0, 50, 0}, {0, 0, minus, 0}, {0, 0, 0, 0}} {
			s.word(value, c[0], c[1], c[2], c[3])
			s.call(linux.SYS_TIMERFD_SETTIME, fd, 0, at(value), at(old))
			s.hide(old+16, 16) // the remaining time
			s.call(linux.SYS_TIMERFD_GETTIME, fd, at(old))
			s.hide(old+16, 16)
			s.call(linux.SYS_READ, fd, at(room), 8)
		}
		s.call(linux.SYS_TIMERFD_SETTIME, fd, 99, at(value), at(old))
		s.call(linux.SYS_TIMERFD_SETTIME, fd, 0, noAddress, at(old))
		s.call(linux.SYS_TIMERFD_SETTIME, fd, 0, at(value), 0)
		s.call(linux.SYS_TIMERFD_SETTIME, fd, 0, at(value), noAddress)
		s.call(linux.SYS_TIMERFD_GETTIME, fd, noAddress)
	}
	s.call(linux.SYS_TIMERFD_CREATE, 99, 0)
	s.call(linux.SYS_TIMERFD_CREATE, linux.CLOCK_MONOTONIC, 1)
	for _, fd := range []uint64{counter, semaphore} {
		for _, n := range []uint64{7, 8, 100} {
			s.call(linux.SYS_READ, fd, at(room), n)
		}
		for _, v := range []uint64{3, 0, minus, minus - 1, minus - 2} {
			s.word(value, v)
			s.call(linux.SYS_WRITE, fd, at(value), 8)
			s.call(linux.SYS_WRITE, fd, at(value), 7)
		}
		s.call(linux.SYS_READ, fd, at(room), 8)
		s.call(linux.SYS_READ, fd, at(room), 8)
		s.call(linux.SYS_PREAD64, fd, at(room), 8, 0)
	}
	s.call(linux.SYS_EVENTFD2, 0, 2)
	s.call(linux.SYS_EVENTFD2, 0, 1<<20)
	asOnLinux(t, s)
}
