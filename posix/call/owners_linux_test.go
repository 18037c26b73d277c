package call

import (
	"testing"

	"loam/abi/linux"
)

// The owner of a file, which gets its signals, is a process, a group or a thread. Without an owner, the ID is 0.
func TestOwnersAsOnLinux(t *testing.T) {
	s := &sequence{}
	a, _ := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0, at(0))
	read, _ := s.pair(linux.SYS_PIPE2, 0, at(0), linux.O_NONBLOCK)
	f := s.file("file", "x")
	path := s.open(linux.SYS_OPENAT, here, s.text("file"), linux.O_PATH, 0)
	const owner = 0x100
	for _, fd := range []uint64{a, read, f, path, none} {
		look := func() {
			s.call(linux.SYS_FCNTL, fd, linux.F_GETOWN)
			s.int32(owner, 77, 88)
			s.call(linux.SYS_FCNTL, fd, linux.F_GETOWN_EX, at(owner))
		}
		look()
		const noProcess = 1<<31 - 1
		for _, id := range []uint64{0, 1 << 31, noProcess} {
			s.call(linux.SYS_FCNTL, fd, linux.F_SETOWN, id)
			look()
		}
		for _, kind := range []uint32{0, 1, 2, 3, 1<<32 - 1} {
			for _, id := range []uint32{0, 1<<32 - 1} {
				s.int32(owner, kind, id)
				s.call(linux.SYS_FCNTL, fd, linux.F_SETOWN_EX, at(owner))
			}
			look()
		}
		s.call(linux.SYS_FCNTL, fd, linux.F_SETOWN, 0)
		look()
		for _, signal := range []uint64{0, 10, 64, 65, minus} {
			s.call(linux.SYS_FCNTL, fd, linux.F_SETSIG, signal)
			s.call(linux.SYS_FCNTL, fd, linux.F_GETSIG)
		}
		s.int32(owner, 5)
		for _, request := range []uint64{linux.FIOGETOWN, linux.SIOCGPGRP} {
			s.call(linux.SYS_IOCTL, fd, request, at(owner))
			s.call(linux.SYS_IOCTL, fd, request, noAddress)
		}
		s.call(linux.SYS_FCNTL, fd, linux.F_NOTIFY, 0)
	}
	asOnLinux(t, s)
}

// Requests about network interfaces (netdevice(7)) have a struct ifreq with a name or an index. Both systems have lo.
func TestInterfaceRequestsAsOnLinux(t *testing.T) {
	s := &sequence{}
	udp := s.open(linux.SYS_SOCKET, linux.AF_INET, linux.SOCK_DGRAM, 0)
	unix := s.open(linux.SYS_SOCKET, linux.AF_UNIX, linux.SOCK_DGRAM, 0)
	f := s.file("file", "x")
	const request = 0x100
	for _, fd := range []uint64{udp, unix, f, none} {
		for _, kind := range []uint64{linux.SIOCGIFINDEX, linux.SIOCGIFADDR, linux.SIOCGIFNETMASK, linux.SIOCGIFHWADDR, linux.SIOCGIFMTU} {
			if fd == unix && (kind == linux.SIOCGIFADDR || kind == linux.SIOCGIFNETMASK) {
				continue // Linux has these requests only for sockets of the address family
			}
			for _, name := range []string{"lo", "absent0", "", "a name that is too long"} {
				s.put(request, make([]byte, linux.SizeofIfreq)...)
				s.put(request, []byte(name[:min(len(name), 16)])...)
				s.call(linux.SYS_IOCTL, fd, kind, at(request))
				s.hide(request+16, 24) // the MTU and unused bytes may differ
			}
			s.call(linux.SYS_IOCTL, fd, kind, noAddress)
		}
		for _, index := range []uint32{1, 0, 9999, 1<<32 - 1} {
			s.put(request, make([]byte, linux.SizeofIfreq)...)
			s.int32(request+16, index)
			s.call(linux.SYS_IOCTL, fd, linux.SIOCGIFNAME, at(request))
		}
	}
	s.word(request, 0, 0)
	s.call(linux.SYS_IOCTL, f, linux.SIOCGIFCONF, at(request))
	s.call(linux.SYS_IOCTL, none, linux.SIOCGIFCONF, at(request))
	s.call(linux.SYS_IOCTL, udp, linux.SIOCGIFCONF, noAddress)
	s.int32(request, 100)
	s.word(request+8, noAddress)
	s.call(linux.SYS_IOCTL, udp, linux.SIOCGIFCONF, at(request))
	asOnLinux(t, s)
}

// A message queue notifies one process, and the address of the event is read first.
func TestNotificationsAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "x")
	const event, attributes, old = 0x100, 0x200, 0x280
	s.word(attributes, 0, 2, 8, 0, 0, 0, 0, 0)
	name := s.text("loam-test-notify")
	queue := s.open(linux.SYS_MQ_OPEN, name, linux.O_RDWR|linux.O_CREAT|linux.O_NONBLOCK, 0o600, at(attributes))
	for _, fd := range []uint64{queue, f, none} {
		s.call(linux.SYS_MQ_NOTIFY, fd, noAddress)
		s.call(linux.SYS_MQ_NOTIFY, fd, lastBytes)
		for _, e := range [][2]uint64{{0, 99}, {65, 0}, {10, 9}, {0, 1}, {10, 1}} { // the signal, and how to notify: 1 is SIGEV_NONE
			s.word(event, 5, e[0]|e[1]<<32, 0, 0)
			s.call(linux.SYS_MQ_NOTIFY, fd, at(event))
		}
		s.call(linux.SYS_MQ_NOTIFY, fd, 0)
		s.call(linux.SYS_MQ_NOTIFY, fd, 0)
		s.word(event, noAddress, 2<<32, 0) // SIGEV_THREAD: the value is the address of a cookie
		s.call(linux.SYS_MQ_NOTIFY, fd, at(event))
		s.call(linux.SYS_MQ_GETSETATTR, fd, noAddress, 0)
		s.call(linux.SYS_MQ_GETSETATTR, fd, 0, noAddress)
		s.call(linux.SYS_MQ_GETSETATTR, fd, lastBytes, at(old))
		s.call(linux.SYS_MQ_TIMEDSEND, fd, noAddress, 4, 0, 0)
		s.call(linux.SYS_MQ_TIMEDSEND, fd, at(0x1000), 4, 0, noAddress)
		s.call(linux.SYS_MQ_TIMEDSEND, fd, at(0x1000), 9, 0, 0)
		s.call(linux.SYS_MQ_TIMEDSEND, fd, at(0x1000), 8, 7, 0)
		s.call(linux.SYS_MQ_TIMEDRECEIVE, fd, at(0x2000), 7, at(0x300), 0)
		s.call(linux.SYS_MQ_TIMEDRECEIVE, fd, at(0x2000), 8, at(0x300), 0)
		s.call(linux.SYS_MQ_TIMEDRECEIVE, fd, at(0x2000), 8, 0, 0)
	}
	s.call(linux.SYS_MQ_UNLINK, name)
	asOnLinux(t, s)
}
