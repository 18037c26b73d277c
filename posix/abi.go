package posix

import "syscall"

// Errno is an error number of Linux; 0 is success.
type Errno = syscall.Errno

// What package syscall lacks of Linux's numbers. They are from the kernel's
// user-space headers (include/uapi/linux, include/uapi/asm-generic) for x86-64.

// Events is a set of poll(2) events; epoll(7) uses the same bits.
type Events uint32

// Events.
const (
	PollIn    Events = 0x0001
	PollPri   Events = 0x0002
	PollOut   Events = 0x0004
	PollErr   Events = 0x0008
	PollHup   Events = 0x0010
	PollNval  Events = 0x0020
	PollRdHup Events = 0x2000
)

// pollGone is told to a file's queue when the file has been closed. It is ours:
// programs never see it.
const pollGone Events = 1 << 20

// pollAlways are the events that poll and epoll report without being asked.
const pollAlways = PollErr | PollHup

// Socket options of level SOL_SOCKET (asm-generic/socket.h).
const (
	soReusePort     = 15
	soPassSec       = 34
	soTimestampNS   = 35
	soProtocol      = 38
	soDomain        = 39
	soRxqOvfl       = 40
	soIncomingCPU   = 49
	soCookie        = 57
	soZerocopy      = 60
	soPeekOff       = 42
	soBusyPoll      = 46
	soSndBufForce   = 32
	soRcvBufForce   = 33
	soMark          = 36
	soMaxPacingRate = 47
)

// Socket options of level IPPROTO_TCP (linux/tcp.h).
const (
	tcpUserTimeout     = 18
	tcpFastOpen        = 23
	tcpNotSentLowat    = 25
	tcpFastOpenConnect = 30
)

// Socket options of level IPPROTO_IP (linux/in.h).
const (
	ipOrigDstAddr       = 20
	ipBindAddressNoPort = 24
)

// Options of level IPPROTO_UDP (linux/udp.h).
const (
	udpSegment = 103 // UDP_SEGMENT
	udpGRO     = 104 // UDP_GRO
)

// Requests of ioctl(2) (asm-generic/ioctls.h, linux/sockios.h).
const (
	fioNBIO   = 0x5421
	fioNRead  = 0x541b
	sioInq    = fioNRead
	sioOutq   = 0x5411
	sioAtMark = 0x8905
	fioClex   = 0x5451
	fioNClex  = 0x5450
)

// Flags of fcntl(2), epoll_ctl(2) and others.
const (
	epollExclusive = 1 << 28
	epollWakeup    = 1 << 29
	epollOneShot   = 1 << 30
	epollET        = 1 << 31
	fDupFDCloexec  = 1030
	fSetPipeSize   = 1031
	fGetPipeSize   = 1032
)
