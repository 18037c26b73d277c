package unix

import (
	"sync"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/posix/file"
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

// A message counts for its sender, with the descriptors in it, and not for the process of another user that has not read it.
func TestHeld(t *testing.T) {
	const size, large = 10_000, 50_000
	names := newNames()
	pair := func() (a, b *Socket) {
		a, _ = New(names, 0, linux.SOCK_STREAM, 0)
		b, _ = New(names, 0, linux.SOCK_STREAM, 0)
		Pair(someone(), a, b)
		return a, b
	}
	send := func(s *Socket, n int, passed ...*file.Description) {
		t.Helper()
		c := []socket.Control{{Level: linux.SOL_SOCKET, Type: linux.SCM_RIGHTS, Passed: passed}}
		if got, errno := s.Send(make([]byte, n), socket.Outgoing{Control: c}); got != n || errno != 0 {
			t.Fatalf("%d, %v", got, errno)
		}
	}
	want := func(what string, s *Socket, least int64) {
		t.Helper()
		if got := s.Held(); got < least || got > least+5_000 {
			t.Errorf("%s holds %d bytes, want %d", what, got, least)
		}
	}
	a, b := pair()
	send(a, size)
	want("a sender", a, size)
	want("a reader", b, 0)
	c, d := pair()
	send(d, large)
	d.Close()
	want("a reader after the end of the stream", c, large)
	o := file.NewDescription(c, 0)
	o.Hold()
	send(a, 1, o)
	want("a sender of a descriptor", a, size+large)
	b.Recv(make([]byte, size), 0)
	r, _ := b.Recv(make([]byte, 1), 0)
	want("a sender after the message has been read", a, 0)
	socket.DropControl(r.Control)
	want("a socket that has been closed", c, 0)

	server, client := bound(t, names, "server"), func() *Socket { s, _ := New(names, 7, linux.SOCK_STREAM, 0); return s }()
	server.Listen(someone(), 1)
	if errno := client.connectStream(Credentials{UID: 7}, server); errno != 0 {
		t.Fatal(errno)
	}
	accepted, _ := server.Accept()
	send(client, size)
	client.Close()
	want("the process of another user", accepted.(*Socket), 0)
}
