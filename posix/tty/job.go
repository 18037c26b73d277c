package tty

import "loam/posix/file"

// Groups sends signals to processes by their IDs. Package task implements it for Linux programs. Its methods take locks of
// their own, so no lock of a file is held while they are called.
type Groups interface {
	// SignalGroup sends a signal of the kernel's to a process group, and SignalProcess to a process.
	SignalGroup(group int32, signal int)
	SignalProcess(pid int32, signal int)
	// SessionOf returns the session of a process group, or 0 if no process is in the group.
	SessionOf(group int32) int32
}

// Member is a thread as job control sees it.
type Member interface {
	Groups
	// IDs returns the thread's process, and its process group and session.
	IDs() (pid, group, session int32)
	// Ignores reports whether the thread blocks a signal, or its process ignores it.
	Ignores(signal int) bool
	// Orphaned reports whether the process group is orphaned (POSIX.1-2017, 3.264).
	Orphaned() bool
}

// Caller is the thread that makes a call on a terminal.
type Caller interface {
	Member
	// May reports whether the thread has a capability.
	May(capability int) bool
	// Detached reports whether the process does not use the terminal of its session any more (TIOCNOTTY). Detach sets it.
	Detached() bool
	Detach(on bool)
	// Waiting returns the task of a call that waits.
	Waiting() file.Task
}
