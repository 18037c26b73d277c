package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/event"
	"loam/posix/file"
)

// Calls that create files for events: see posix/event.

// EventFD implements eventfd2(2). Errors: EINVAL, EMFILE.
func (p *Process) EventFD(count uint32, flags int) (int, Errno) {
	if flags&^(linux.EFD_SEMAPHORE|linux.O_CLOEXEC|linux.O_NONBLOCK) != 0 {
		return -1, linux.EINVAL
	}
	return p.install(event.NewCounter(count, flags&linux.EFD_SEMAPHORE != 0), flags&(linux.O_CLOEXEC|linux.O_NONBLOCK))
}

// SignalFD implements signalfd4(2). fd is -1 for a new file. Errors: EINVAL, EBADF, EMFILE; ENOSYS where programs have no
// signals.
func (p *Process) SignalFD(fd int, set uint64, flags int) (int, Errno) {
	if flags&^(linux.O_CLOEXEC|linux.O_NONBLOCK) != 0 {
		return -1, linux.EINVAL
	}
	const unblockable = 1<<(linux.SIGKILL-1) | 1<<(linux.SIGSTOP-1)
	set &^= unblockable
	if fd != -1 {
		o, errno := p.get(fd)
		if errno != 0 {
			return -1, errno
		}
		s, ok := o.File.(*event.Signals)
		if !ok {
			return -1, linux.EINVAL
		}
		s.SetSignals(set)
		return fd, 0
	}
	of, ok := p.member.(event.Source)
	if !ok {
		return -1, linux.ENOSYS
	}
	return p.install(event.NewSignals(of, set), flags)
}

// readSignals implements read(2) on a signalfd. As on Linux, it takes signals of the reading thread, which may not be the
// creator of the file.
func (p *Process) readSignals(o *file.Description, f *event.Signals, b []byte) (int, Errno) {
	of, ok := p.member.(event.Source)
	if !ok {
		return -1, linux.EINVAL
	}
	return f.ReadFor(of, b, o.Nonblocking(), p.Waiting())
}

// InotifyInit implements inotify_init1(2). Errors: EINVAL, EMFILE.
func (p *Process) InotifyInit(flags int) (int, Errno) {
	if flags&^(linux.IN_NONBLOCK|linux.IN_CLOEXEC) != 0 {
		return -1, linux.EINVAL
	}
	i, errno := p.watchers.New(p.sight().Tree, uint32(p.Credentials().UID))
	if errno != 0 {
		return -1, errno
	}
	return p.installWith(i, flags&linux.O_NONBLOCK|linux.O_RDONLY, flags&linux.IN_CLOEXEC != 0)
}

// inotify returns the inotify instance of fd. Errors: EBADF, EINVAL.
func (p *Process) inotify(fd int) (*event.Inotify, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return nil, errno
	}
	i, ok := o.File.(*event.Inotify)
	if !ok {
		return nil, linux.EINVAL
	}
	return i, 0
}

// InotifyAddWatch implements inotify_add_watch(2). It returns the watch descriptor, which is the old
// one if the file is watched already. Errors: EBADF, EINVAL, EEXIST, EACCES, ENOTDIR, and those of
// path lookup.
func (p *Process) InotifyAddWatch(fd int, path string, mask uint32) (int, Errno) {
	i, errno := p.inotify(fd)
	if errno != 0 {
		return -1, errno
	}
	if !event.ValidMask(mask) {
		return -1, linux.EINVAL
	}
	v, place, errno := p.lookup(linux.AT_FDCWD, path, mask&linux.IN_DONT_FOLLOW == 0, false)
	if errno != 0 {
		return -1, errno
	}
	if err := v.Access(place, fs.ToRead); err != nil {
		return -1, file.ToErrno(err)
	}
	if _, ok := place.Node.(fs.Directory); !ok && mask&linux.IN_ONLYDIR != 0 {
		return -1, linux.ENOTDIR
	}
	return i.Add(place.Node, place.Device(), mask)
}

// InotifyRmWatch implements inotify_rm_watch(2). Errors: EBADF, EINVAL.
func (p *Process) InotifyRmWatch(fd int, number int32) Errno {
	i, errno := p.inotify(fd)
	if errno != 0 {
		return errno
	}
	return i.Remove(number)
}
