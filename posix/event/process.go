package event

import (
	"fmt"
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Watched is a process whose end a pidfd reports.
type Watched = file.Watched

// Process is the file of a pidfd (pidfd_open(2)): it becomes readable when the process ends. The process knows only the pidfds with
// a waiter, until they are closed.
type Process struct {
	of   Watched
	q    file.Queue
	end  file.Watch
	once sync.Once // registers end; used up by Close
}

// NewProcess returns a file for a process.
func NewProcess(of Watched) *Process {
	f := &Process{of: of}
	f.end.Notify = f.q.Notify
	f.q.OnAdd(func() { f.once.Do(func() { f.of.AddWatch(&f.end) }) })
	return f
}

// Close implements file.File. A call of another thread may add a waiter at the same time, or later.
func (f *Process) Close() {
	f.once.Do(func() {})
	f.of.RemoveWatch(&f.end)
}

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
func (f *Process) Mode() uint32                    { return uint32(fs.Regular) | 0o700 }

func (f *Process) Events() file.Events {
	if f.of.Ended() {
		return file.PollIn
	}
	return 0
}
