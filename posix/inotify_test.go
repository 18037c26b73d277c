package posix

import (
	"encoding/binary"
	"slices"
	"sync"
	"testing"

	"loam/abi/linux"
)

const (
	mostEvents    = 16384 // events that are queued (max_queued_events of proc(5))
	inotifyHeader = 16    // size of struct inotify_event without the name, in bytes
)

// When the queue is full, one overflow event replaces further events.
func TestInotifyOverflow(t *testing.T) {
	p := process(t)
	i := fd(t)(p.InotifyInit(linux.IN_NONBLOCK))
	_, errno := p.InotifyAddWatch(i, "/", linux.IN_CREATE|linux.IN_DELETE)
	ok(t, errno)
	for range mostEvents/2 + 2 {
		ok(t, p.MkdirAt(linux.AT_FDCWD, "/d", 0o755))
		ok(t, p.UnlinkAt(linux.AT_FDCWD, "/d", linux.AT_REMOVEDIR))
	}
	b := make([]byte, (mostEvents+10)*2*inotifyHeader)
	n, errno := p.Read(i, b)
	ok(t, errno)
	if want := mostEvents*2*inotifyHeader + inotifyHeader; n != want {
		t.Fatalf("%d bytes of events, want %d", n, want)
	}
	if mask := b[n-inotifyHeader+5]; mask != linux.IN_Q_OVERFLOW>>8 {
		t.Errorf("the last event: %v", b[n-inotifyHeader:n])
	}
	_, errno = p.Read(i, b)
	wantErrno(t, errno, linux.EAGAIN, "a second read")
}

// inotify(7): a removed file exists until its last descriptor is closed.
func TestInotifyRemovedWhileOpen(t *testing.T) {
	p := process(t)
	file := fd(t)(openFile(p))
	i := fd(t)(p.InotifyInit(linux.IN_NONBLOCK))
	_, errno := p.InotifyAddWatch(i, "/file", linux.IN_ATTRIB|linux.IN_DELETE_SELF)
	ok(t, errno)
	masks := func() (list []uint32) {
		b := make([]byte, 20*inotifyHeader)
		n, _ := p.Read(i, b)
		for at := 0; at < n; at += inotifyHeader {
			list = append(list, binary.NativeEndian.Uint32(b[at+4:]))
		}
		return list
	}
	ok(t, p.UnlinkAt(linux.AT_FDCWD, "/file", 0))
	if got := masks(); !slices.Equal(got, []uint32{linux.IN_ATTRIB}) {
		t.Errorf("after unlink: %#x, want IN_ATTRIB", got)
	}
	ok(t, p.Close(file))
	if got := masks(); !slices.Equal(got, []uint32{linux.IN_DELETE_SELF, linux.IN_IGNORED}) {
		t.Errorf("after close: %#x, want IN_DELETE_SELF and IN_IGNORED", got)
	}
}

// Files change while instances are created and closed.
func TestInotifyConcurrent(t *testing.T) {
	p := process(t)
	ok(t, p.MkdirAt(linux.AT_FDCWD, "/w", 0o755))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				f, errno := p.OpenAt(linux.AT_FDCWD, "/w/f", create, 0o600)
				if errno == 0 {
					p.Write(f, []byte("text"))
					p.Close(f)
				}
				p.UnlinkAt(linux.AT_FDCWD, "/w/f", 0)
			}
		})
		all.Go(func() {
			b := make([]byte, 4096)
			for range 100 {
				i, _ := p.InotifyInit(linux.IN_NONBLOCK)
				n, _ := p.InotifyAddWatch(i, "/w", linux.IN_ALL_EVENTS)
				p.InotifyAddWatch(i, "/w/f", linux.IN_ALL_EVENTS)
				p.Read(i, b)
				p.InotifyRmWatch(i, int32(n))
				p.Close(i)
			}
		})
	}
	all.Wait()
	if n := p.watchers.Len(); n != 0 {
		t.Errorf("left: %d instances", n)
	}
}
