package posix

import (
	"testing"
	"testing/synctest"

	"loam/abi/linux"
	"loam/posix/file"
)

// A child has the parent's descriptors, which refer to the same open files, and its own table.
func TestFork(t *testing.T) {
	p := New(Options{Credentials: Credentials{PID: 1}})
	fds, errno := p.Pipe2(linux.O_CLOEXEC)
	ok(t, errno)
	kept, errno := p.Dup(fds[0])
	ok(t, errno)
	child := p.Fork(2, 0)
	if child.PID() != 2 || p.PID() != 1 {
		t.Errorf("process IDs %d and %d", child.PID(), p.PID())
	}
	ok(t, p.Close(fds[1]))
	if _, errno := child.Write(fds[1], []byte("x")); errno != 0 {
		t.Errorf("the child's descriptor: %v", errno)
	}
	child = child.Exec()
	if _, errno := child.Write(fds[1], []byte("x")); errno != linux.EBADF {
		t.Errorf("after exec: %v, want EBADF", errno)
	}
	b := make([]byte, 2)
	if n, errno := child.Read(kept, b); n != 1 || errno != 0 {
		t.Errorf("read %d, %v", n, errno)
	}
	if n, errno := p.Read(fds[0], b); n != 0 || errno != 0 {
		t.Errorf("all writers are closed: read %d, %v", n, errno)
	}
	if fd, errno := child.Dup(kept); fd != 0 || errno != 0 {
		t.Errorf("the lowest free descriptor is %d, %v", fd, errno)
	}
	child.CloseAll()
	if list := child.fds.List(); len(list) != 0 {
		t.Errorf("open: %v", list)
	}
}

// A change of shared state is visible to parent and child: descriptors (CLONE_FILES) and the working directory
// (CLONE_FS).
func TestForkShares(t *testing.T) {
	p := New(Options{})
	ok(t, p.MkdirAt(linux.AT_FDCWD, "/dir", 0o755))
	for _, share := range []Share{0, ShareDescriptors, SharePlace} {
		ok(t, p.Chdir("/"))
		child := p.Fork(2, share)
		fd, errno := child.EventFD(0, 0)
		ok(t, errno)
		ok(t, child.Chdir("/dir"))
		if _, errno := p.get(fd); (errno == 0) != (share == ShareDescriptors) {
			t.Errorf("share %d: descriptor: %v", share, errno)
		}
		if path, _ := p.Getcwd(); (path == "/dir") != (share == SharePlace) {
			t.Errorf("share %d: the directory is %q", share, path)
		}
		ok(t, child.Close(fd))
	}
}

// A shared table is closed by the last process that uses it, and a program that is executed gets a table of its own.
func TestSharedDescriptors(t *testing.T) {
	p := New(Options{})
	fd, errno := p.EventFD(0, linux.O_CLOEXEC)
	ok(t, errno)
	child := p.Fork(2, ShareDescriptors).Exec()
	if _, errno := child.get(fd); errno != linux.EBADF {
		t.Errorf("after exec, in the child: %v", errno)
	}
	if _, errno := p.get(fd); errno != 0 {
		t.Errorf("after exec, in the parent: %v", errno)
	}
	p.Fork(3, ShareDescriptors).CloseAll()
	if _, errno := p.get(fd); errno != 0 {
		t.Errorf("after the end of a child: %v", errno)
	}
	p.CloseAll()
	if _, errno := p.get(fd); errno != linux.EBADF {
		t.Errorf("after the end of the last: %v", errno)
	}
}

// An interrupt ends every kind of wait with EINTR.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		interrupt := file.NewInterrupt()
		p := New(Options{}).Task(interrupt)
		fds, errno := p.Pipe2(0)
		ok(t, errno)
		pair, errno := p.SocketPair(linux.AF_UNIX, linux.SOCK_STREAM, 0)
		ok(t, errno)
		full := pair[0]
		epoll, errno := p.EpollCreate(0)
		ok(t, errno)
		ok(t, p.MkdirAt(linux.AT_FDCWD, "/dir", 0o755))
		for name, wait := range map[string]func() Errno{
			"read":  func() Errno { _, errno := p.Read(fds[0], make([]byte, 1)); return errno },
			"write": func() Errno { _, errno := p.Write(full, make([]byte, 64<<20)); return errno },
			"recv":  func() Errno { _, errno := p.Recv(full, make([]byte, 1), 0); return errno },
			"poll":  func() Errno { _, errno := p.Poll([]PollFD{{FD: fds[0], Events: PollIn}}, -1); return errno },
			"epoll": func() Errno { _, errno := p.EpollWait(epoll, make([]EpollEvent, 1), -1); return errno },
		} {
			done := make(chan Errno)
			go func() { done <- wait() }()
			synctest.Wait()
			interrupt.Raise()
			got := <-done
			if name == "write" && got == 0 { // the call has written some bytes; the next call blocks before it writes any
				continue
			}
			if got != linux.EINTR {
				t.Errorf("%s: %v, want EINTR", name, got)
			}
		}
	})
}
