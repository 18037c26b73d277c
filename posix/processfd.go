package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// A pidfd of a process in ring 3: a descriptor that becomes readable when the process ends (pidfd_open(2)).

// Watched is a process whose end can be waited for.
type Watched interface {
	PID() int
	// Ended reports whether the process has ended. OnEnd calls f at the end, or at once if the process has ended.
	Ended() bool
	OnEnd(f func())
}

// processFD is the file of a pidfd.
type processFD struct {
	of Watched
	q  file.Queue
}

func (f *processFD) Queue() *file.Queue        { return &f.q }
func (f *processFD) Read([]byte) (int, Errno)  { return 0, linux.EINVAL }
func (f *processFD) Write([]byte) (int, Errno) { return 0, linux.EINVAL }
func (f *processFD) Close()                    {}
func (f *processFD) Mode() uint32              { return uint32(fs.Regular) | 0o700 }

func (f *processFD) Events() Events {
	if f.of.Ended() {
		return PollIn
	}
	return 0
}

// InstallProcess allocates a descriptor for a process, with FD_CLOEXEC. flags may contain O_NONBLOCK. Errors: EMFILE.
func (p *Process) InstallProcess(of Watched, flags int) (int, Errno) {
	f := &processFD{of: of}
	fd, errno := p.install(f, flags&linux.O_NONBLOCK|linux.O_CLOEXEC)
	if errno == 0 {
		of.OnEnd(func() { f.q.Notify(PollIn) })
	}
	return fd, errno
}

// WatchedProcess returns the process of a descriptor of InstallProcess, and whether the descriptor is non-blocking. Errors:
// EBADF, also for other descriptors.
func (p *Process) WatchedProcess(fd int) (of Watched, nonblocking bool, errno Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return nil, false, errno
	}
	f, ok := o.File.(*processFD)
	if !ok {
		return nil, false, linux.EBADF
	}
	return f.of, o.Nonblocking(), 0
}

// Receive allocates a descriptor for the file behind a descriptor of another process (pidfd_getfd(2)). Errors: EBADF, EMFILE.
func (p *Process) Receive(from *Process, fd int) (int, Errno) {
	o, errno := from.get(fd)
	if errno != 0 {
		return -1, errno
	}
	return p.fds.Insert(o, 0, p.mostFiles(), true)
}

// FileOrder returns a number that is the same for descriptors of the same open file description, in all processes. Errors:
// EBADF.
func (p *Process) FileOrder(fd int) (uint64, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return 0, errno
	}
	return o.Number(&p.serial), 0
}

// SharesTable and SharesPlace report whether two processes share the descriptor table, and the place in the file tree.
func (p *Process) SharesTable(with *Process) bool { return p.fds == with.fds }
func (p *Process) SharesPlace(with *Process) bool { return p.place == with.place }

// Unshare gives the process its own copies of the descriptor table and the place in the file tree, except those in keep
// (unshare(2)).
func (p *Process) Unshare(keep Share) *Process {
	q := *p
	if keep&SharePlace == 0 {
		q.place = &place{}
		q.view.Store(p.view.Load())
	}
	if keep&ShareDescriptors == 0 && p.fds.Shared() {
		q.fds = p.fds.Copy()
		p.CloseAll()
	}
	return &q
}
