package tty

import "loam/posix/file"

// Groups sends signals to processes by their IDs. Package task implements it for Linux programs. Its methods take locks of
// their own, so no lock of a file is held while they are called.
type Groups interface {
	// SignalGroup sends a signal to a process group, and SignalProcess to a process. The kernel is the sender of the signal.
	SignalGroup(group int32, signal int)
	SignalProcess(pid int32, signal int)
	// SessionOf returns the session of a process group, or 0 if no process is in the group.
	SessionOf(group int32) int32
}

// Member is a thread with the properties that job control needs.
type Member interface {
	Groups
	// IDs returns the process ID, the process group and the session of the thread.
	IDs() (pid, group, session int32)
	// Ignores reports whether the thread blocks a signal, or its process ignores it.
	Ignores(signal int) bool
	// Orphaned reports whether the process group of the thread is orphaned (POSIX.1-2017, 3.264).
	Orphaned() bool
}

// Caller is the thread that makes a call on a terminal.
type Caller interface {
	Member
	// May reports whether the thread has a capability.
	May(capability int) bool
	// Detached reports whether the process no longer uses the terminal of its session (TIOCNOTTY), and Detach changes that.
	Detached() bool
	Detach(on bool)
	// Waiting returns the file.Task for a call that waits.
	Waiting() file.Task
}
