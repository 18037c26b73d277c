package posix

import (
	"loam/abi/linux"
	"loam/posix/epoll"
	"loam/posix/event"
	"loam/posix/file"
	"loam/posix/handed"
	"loam/posix/socket"
	"loam/posix/timer"
	"loam/posix/unix"
)

// Aliases of names of the packages below posix (posix/file, posix/socket and others), for callers that import only this
// package.

// Errno is an error number of Linux; 0 is success.
type Errno = linux.Errno

// Events is a set of poll(2) events.
type Events = file.Events

// Events for which a program can wait, as in poll(2).
const (
	PollIn    = file.PollIn
	PollPri   = file.PollPri
	PollOut   = file.PollOut
	PollErr   = file.PollErr
	PollHup   = file.PollHup
	PollNval  = file.PollNval
	PollRdHup = file.PollRdHup
)

// Stat is the result of stat(2) and statx(2).
type Stat = file.Stat

// Addresses and messages of sockets.
type (
	Address     = socket.Address
	LinkAddress = socket.LinkAddress
	Outgoing    = socket.Outgoing
	Received    = socket.Received
	Control     = socket.Control
)

// Credentials is struct ucred (unix(7)).
type Credentials = unix.Credentials

// TCP connections that the host has accepted and passes to the program: see posix/handed.
type (
	HostTCP  = handed.HostTCP
	Arrivals = handed.Arrivals
	Way      = handed.Way
)

// Files that only report events: see posix/event.
type (
	Signals = event.Source
	Watched = event.Watched
)

// SizeofSignalfdSiginfo is the size of struct signalfd_siginfo in bytes (signalfd(2)).
const SizeofSignalfdSiginfo = event.SizeofInfo

// Timers: see posix/timer.
type (
	TimerSetting = timer.Setting
	Event        = timer.Event
	Sender       = timer.Sender
	Expiry       = timer.Expiry
)

// EpollEvent is struct epoll_event.
type EpollEvent = epoll.Event
