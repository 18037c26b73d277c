package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/lock"
)

// Calls on file locks: see posix/lock. The owner of a lock is either the process (F_SETLK) or an open file description
// (F_OFD_SETLK, flock). A process loses all its locks on a file when it closes any descriptor of that file.

// FileLock is struct flock.
type FileLock = linux.Flock

// Flock implements flock(2). Without LOCK_NB it blocks until the lock is free. Errors: EBADF, EAGAIN,
// EINVAL.
func (p *Process) Flock(fd, how int) Errno {
	f, errno := p.real(fd, linux.EBADF)
	if errno != 0 {
		return errno
	}
	const mandatory = 32 // LOCK_MAND, which Linux no longer supports and ignores
	if how&mandatory != 0 {
		return 0
	}
	node := f.Place().Node
	want := p.wholeLock(f, how&^linux.LOCK_NB == linux.LOCK_EX)
	switch how &^ linux.LOCK_NB {
	case linux.LOCK_UN:
		p.locks.Flocks.Release(node, want)
		return 0
	case linux.LOCK_SH, linux.LOCK_EX:
		return p.locks.Flocks.Convert(node, want, how&linux.LOCK_NB == 0, p.Waiting())
	}
	return linux.EINVAL
}

// wholeLock returns a lock or a lease that belongs to a file.
func (p *Process) wholeLock(f *treeFile, write bool) lock.Lock {
	l := lock.Whole(f, write)
	l.File, l.PID = f, p.credentials.PID
	return l
}

// Lock implements the lock commands of fcntl(2). Errors: EBADF, EAGAIN if a conflicting lock is
// held and cmd does not wait, EINVAL, EOVERFLOW, and EDEADLK if processes would wait for each other.
func (p *Process) Lock(fd, cmd int, l *FileLock) Errno {
	f, errno := p.real(fd, linux.EBADF)
	if errno != 0 {
		return errno
	}
	switch l.Type {
	case linux.F_RDLCK, linux.F_WRLCK:
	case linux.F_UNLCK:
		if cmd == linux.F_GETLK {
			return linux.EINVAL
		}
	default:
		return linux.EINVAL
	}
	want := lock.Lock{Owner: p.own, File: f, PID: p.credentials.PID, Write: l.Type == linux.F_WRLCK}
	if cmd >= linux.F_OFD_GETLK {
		if want.Owner, want.PID = f, lock.NoPID; l.PID != 0 {
			return linux.EINVAL
		}
	}
	if want.First, want.Last, errno = f.lockRange(l); errno != 0 {
		return errno
	}
	node := f.Place().Node
	switch cmd {
	case linux.F_GETLK, linux.F_OFD_GETLK:
		p.locks.Ranges.Describe(node, want, l.Type == linux.F_UNLCK, l)
		return 0
	}
	switch l.Type {
	case linux.F_UNLCK:
		p.locks.Ranges.Release(node, want)
		return 0
	case linux.F_RDLCK:
		if !f.Flags().MayRead() {
			return linux.EBADF
		}
	case linux.F_WRLCK:
		if !f.Flags().MayWrite() {
			return linux.EBADF
		}
	}
	return p.locks.Ranges.Take(node, want, cmd == linux.F_SETLKW || cmd == linux.F_OFD_SETLKW, cmd == linux.F_SETLKW, p.Waiting())
}

// lockRange returns the first and the last byte of l. Errors: EINVAL, EOVERFLOW.
func (f *treeFile) lockRange(l *FileLock) (first, last int64, errno Errno) {
	return lock.Range(l, func() (int64, error) { return f.Seek(0, fs.SeekCur) }, f.Attr)
}
