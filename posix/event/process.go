package event

import (
	"fmt"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Watched is a process whose end a pidfd reports.
type Watched interface {
	PID() int
	// Ended reports whether the process has ended. OnEnd calls f at the end, or at once if the process has ended.
	Ended() bool
	OnEnd(f func())
}

// Process is the file of a pidfd (pidfd_open(2)): it becomes readable when the process ends.
type Process struct {
	of Watched
	q  file.Queue
}

// NewProcess returns a file for a process. Its waiters are notified after Watch.
func NewProcess(of Watched) *Process { return &Process{of: of} }

// Watch notifies waiters when the process ends. It is called once, when the file has a descriptor: the process keeps the
// file until its end.
func (f *Process) Watch() { f.of.OnEnd(func() { f.q.Notify(file.PollIn) }) }

// Of returns the process that the pidfd refers to.
func (f *Process) Of() Watched { return f.of }

// Name implements file.Named.
func (f *Process) Name() string { return "anon_inode:[pidfd]" }

// Details implements file.Detailed.
func (f *Process) Details() string {
	pid := f.of.PID()
	if f.of.Ended() {
		pid = -1
	}
	return fmt.Sprintf("Pid:\t%d\nNSpid:\t%[1]d\n", pid)
}

func (f *Process) Queue() *file.Queue              { return &f.q }
func (f *Process) Read([]byte) (int, linux.Errno)  { return 0, linux.EINVAL }
func (f *Process) Write([]byte) (int, linux.Errno) { return 0, linux.EINVAL }
func (f *Process) Close()                          {}
func (f *Process) Mode() uint32                    { return uint32(fs.Regular) | 0o700 }

func (f *Process) Events() file.Events {
	if f.of.Ended() {
		return file.PollIn
	}
	return 0
}
