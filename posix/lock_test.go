package posix

import (
	"syscall"
	"testing"
	"testing/synctest"
)

// flock(2) locks belong to the open file description.
func TestFlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := files(t)
		a := fd(t)(p.OpenAt(atFDCWD, "/a", create, 0o600))
		b := fd(t)(p.OpenAt(atFDCWD, "/a", create, 0o600))
		ok(t, p.Flock(a, lockShared))
		ok(t, p.Flock(b, lockShared|lockNonblock))
		wantErrno(t, p.Flock(a, lockExclusive|lockNonblock), syscall.EAGAIN, "exclusive beside shared")
		taken := make(chan Errno)
		go func() { taken <- p.Flock(a, lockExclusive) }()
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

// Locks of one process are not in its own way; those of open file descriptions
// are, where ranges overlap (fcntl_locking(2)).
func TestRangeLocks(t *testing.T) {
	p := files(t)
	a := fd(t)(p.OpenAt(atFDCWD, "/a", create, 0o600))
	b := fd(t)(p.OpenAt(atFDCWD, "/a", create, 0o600))
	lock := func(fd, cmd int, typ int16, start, length int64) Errno {
		return p.Lock(fd, cmd, &FileLock{Type: typ, Start: start, Len: length})
	}
	ok(t, lock(a, syscall.F_SETLK, syscall.F_WRLCK, 0, 10))
	ok(t, lock(b, syscall.F_SETLK, syscall.F_WRLCK, 5, 10))
	wantErrno(t, lock(a, fOFDSetLk, syscall.F_RDLCK, 14, 1), syscall.EAGAIN, "beside the lock of the process")
	ok(t, lock(a, fOFDSetLk, syscall.F_RDLCK, 15, 0))
	ok(t, lock(a, syscall.F_SETLK, syscall.F_UNLCK, 3, 4))
	ok(t, lock(b, fOFDSetLk, syscall.F_WRLCK, 3, 4))
	who := FileLock{Type: syscall.F_WRLCK, Start: 0, Len: 4}
	ok(t, p.Lock(a, fOFDGetLk, &who))
	if who.Type != syscall.F_WRLCK || who.Start != 0 || who.Len != 3 || who.PID != 7 {
		t.Errorf("F_OFD_GETLK says %+v", who)
	}
	c := fd(t)(p.OpenAt(atFDCWD, "/a", syscall.O_RDONLY, 0))
	wantErrno(t, lock(c, syscall.F_SETLK, syscall.F_WRLCK, 0, 1), syscall.EBADF, "to write what is open for reading")
	ok(t, p.Close(c)) // which ends all locks of the process
	ok(t, lock(a, fOFDSetLk, syscall.F_WRLCK, 7, 5))
	if n := p.ranges.count.Load(); n != 3 {
		t.Errorf("%d locks are held", n)
	}
	ok(t, p.Close(a))
	ok(t, p.Close(b))
	if n := p.ranges.count.Load(); n != 0 || len(p.ranges.locks) != 0 {
		t.Errorf("%d locks are left: %v", n, p.ranges.locks)
	}
}
