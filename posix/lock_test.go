package posix

import (
	"testing"
	"testing/synctest"

	"loam/abi/linux"
)

// flock(2) locks belong to the open file description.
func TestFlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := files(t)
		a := fd(t)(p.OpenAt(linux.AT_FDCWD, "/a", create, 0o600))
		b := fd(t)(p.OpenAt(linux.AT_FDCWD, "/a", create, 0o600))
		ok(t, p.Flock(a, linux.LOCK_SH))
		ok(t, p.Flock(b, linux.LOCK_SH|linux.LOCK_NB))
		wantErrno(t, p.Flock(a, linux.LOCK_EX|linux.LOCK_NB), linux.EAGAIN, "exclusive beside shared")
		taken := make(chan Errno)
		go func() { taken <- p.Flock(a, linux.LOCK_EX) }()
		synctest.Wait()
		d := fd(t)(p.Dup(b))
		ok(t, p.Close(b))
		synctest.Wait()
		select {
		case <-taken:
			t.Error("the lock of a description that is open has gone")
		default:
		}
		ok(t, p.Close(d))
		ok(t, <-taken)
	})
}

// open without a free descriptor creates no file.
func TestOpenWithoutDescriptor(t *testing.T) {
	p := files(t)
	first := fd(t)(p.OpenAt(linux.AT_FDCWD, "/", linux.O_PATH, 0))
	var errno Errno
	for errno == 0 {
		_, errno = p.Dup(first)
	}
	_, errno = p.OpenAt(linux.AT_FDCWD, "/new", create, 0o600)
	wantErrno(t, errno, linux.EMFILE, "no descriptor is free")
	ok(t, p.Close(first))
	_, errno = p.OpenAt(linux.AT_FDCWD, "/new", linux.O_PATH, 0)
	wantErrno(t, errno, linux.ENOENT, "the file was not created")
}

// Locks of one process do not conflict with each other. Overlapping locks of open file descriptions do
// (fcntl_locking(2)).
func TestRangeLocks(t *testing.T) {
	p := files(t)
	a := fd(t)(p.OpenAt(linux.AT_FDCWD, "/a", create, 0o600))
	b := fd(t)(p.OpenAt(linux.AT_FDCWD, "/a", create, 0o600))
	lock := func(fd, cmd int, typ int16, start, length int64) Errno {
		return p.Lock(fd, cmd, &FileLock{Type: typ, Start: start, Len: length})
	}
	ok(t, lock(a, linux.F_SETLK, linux.F_WRLCK, 0, 10))
	ok(t, lock(b, linux.F_SETLK, linux.F_WRLCK, 5, 10))
	wantErrno(t, lock(a, linux.F_OFD_SETLK, linux.F_RDLCK, 14, 1), linux.EAGAIN, "beside the lock of the process")
	ok(t, lock(a, linux.F_OFD_SETLK, linux.F_RDLCK, 15, 0))
	ok(t, lock(a, linux.F_SETLK, linux.F_UNLCK, 3, 4))
	ok(t, lock(b, linux.F_OFD_SETLK, linux.F_WRLCK, 3, 4))
	who := FileLock{Type: linux.F_WRLCK, Start: 0, Len: 4}
	ok(t, p.Lock(a, linux.F_OFD_GETLK, &who))
	if who.Type != linux.F_WRLCK || who.Start != 0 || who.Len != 3 || who.PID != 7 {
		t.Errorf("F_OFD_GETLK says %+v", who)
	}
	for _, c := range []struct {
		fd          int
		start, want int64 // -1: no lock
		typ         int16
	}{{a, 0, 15, linux.F_RDLCK}, {b, 0, 3, linux.F_WRLCK}, {b, 7, -1, linux.F_UNLCK}} {
		held := FileLock{Type: linux.F_UNLCK, Start: c.start}
		ok(t, p.Lock(c.fd, linux.F_OFD_GETLK, &held))
		if held.Type != c.typ || c.want >= 0 && (held.Start != c.want || held.PID != -1) {
			t.Errorf("F_OFD_GETLK with F_UNLCK says %+v", held)
		}
	}
	wantErrno(t, lock(a, linux.F_GETLK, linux.F_UNLCK, 0, 0), linux.EINVAL, "F_UNLCK with F_GETLK")
	other := *p
	other.own = &own{credentials: Credentials{PID: 8}}
	who = FileLock{Type: linux.F_WRLCK, Start: 8, Len: 1}
	ok(t, other.Lock(a, linux.F_GETLK, &who))
	if who.Type != linux.F_WRLCK || who.Start != 7 || who.PID != 7 {
		t.Errorf("F_GETLK of another process says %+v", who)
	}
	c := fd(t)(p.OpenAt(linux.AT_FDCWD, "/a", linux.O_RDONLY, 0))
	wantErrno(t, lock(c, linux.F_SETLK, linux.F_WRLCK, 0, 1), linux.EBADF, "to write what is open for reading")
	path := fd(t)(p.OpenAt(linux.AT_FDCWD, "/a", linux.O_PATH, 0))
	before := p.locks.Ranges.Len()
	ok(t, p.Close(path))
	if n := p.locks.Ranges.Len(); n != before {
		t.Errorf("%d locks are held after the close of an O_PATH descriptor, and %d before", n, before)
	}
	ok(t, p.Close(c)) // releases all locks of the process
	ok(t, lock(a, linux.F_OFD_SETLK, linux.F_WRLCK, 7, 5))
	if n := p.locks.Ranges.Len(); n != 3 {
		t.Errorf("%d locks are held", n)
	}
	ok(t, p.Close(a))
	ok(t, p.Close(b))
	if n := p.locks.Ranges.Len(); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}
