package unix

import (
	"sync"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/posix/socket"
)

// abstract returns the address of an abstract name.
func abstract(name string) socket.Address {
	return socket.Address{Family: linux.AF_UNIX, Name: "\x00" + name}
}

func newNames() *Names {
	var names Names
	names.Init()
	return &names
}

// someone calls the methods of sockets with abstract names.
func someone() caller { return caller{fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))} }

// bound returns a stream socket with a name.
func bound(t *testing.T, names *Names, name string) *Socket {
	t.Helper()
	s, _ := New(names, 0, linux.SOCK_STREAM, 0)
	if errno := s.Bind(someone(), abstract(name)); errno != 0 {
		t.Fatal(errno)
	}
	return s
}

// Sockets that connect to themselves and to each other, while they become listeners, do not wait for each other's locks.
func TestConnectBesideListen(t *testing.T) {
	names := newNames()
	for range 300 {
		a, b := bound(t, names, "a"), bound(t, names, "b")
		var all sync.WaitGroup
		for _, f := range []func() linux.Errno{
			func() linux.Errno { return a.Connect(someone(), abstract("a")) },
			func() linux.Errno { return a.Connect(someone(), abstract("b")) },
			func() linux.Errno { return b.Connect(someone(), abstract("a")) },
			func() linux.Errno { return a.Listen(someone(), 1) },
			func() linux.Errno { return b.Listen(someone(), 1) },
		} {
			all.Go(func() { f() })
		}
		all.Wait()
		a.Close()
		b.Close()
	}
}

// A socket that is closed gets no name, because no call would remove it. A call may use a socket that another thread closes.
func TestClosedSocketGetsNoName(t *testing.T) {
	names := newNames()
	for name, call := range map[string]func(s *Socket) linux.Errno{
		"bind":    func(s *Socket) linux.Errno { return s.Bind(someone(), abstract("a")) },
		"connect": func(s *Socket) linux.Errno { return s.Connect(someone(), abstract("b")) },
		"send": func(s *Socket) linux.Errno {
			_, errno := s.Send([]byte{1}, socket.Outgoing{By: someone(), To: abstract("b")})
			return errno
		},
	} {
		s, _ := New(names, 0, linux.SOCK_DGRAM, 0)
		s.PassCred = true
		s.Close()
		if errno := call(s); errno != linux.EBADF || len(names.byName) != 0 {
			t.Errorf("%s: %v, %d names", name, errno, len(names.byName))
		}
	}
}

// A call with an address without a name fails before the socket gets a generated name.
func TestNoNameForInvalidAddress(t *testing.T) {
	names := newNames()
	s, _ := New(names, 0, linux.SOCK_DGRAM, 0)
	s.PassCred = true
	to := socket.Address{Family: linux.AF_UNIX}
	if errno := s.Connect(someone(), to); errno != linux.EINVAL {
		t.Errorf("connect: %v", errno)
	}
	if _, errno := s.Send([]byte{1}, socket.Outgoing{By: someone(), To: to}); errno != linux.EINVAL {
		t.Errorf("send: %v", errno)
	}
	if len(names.byName) != 0 {
		t.Errorf("%d names", len(names.byName))
	}
}
