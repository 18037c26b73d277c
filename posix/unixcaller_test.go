package posix

import (
	"cmp"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/credential"
	"loam/posix/socket"
	"loam/posix/unix"
)

// Tests of Unix sockets that a process has inherited: calls use the IDs, the root, the working directory and the umask of the
// caller, and ignore the creator of the socket. All expected results come from Linux 6.18.

// unixName returns the address of a path.
func unixName(path string) Address { return Address{Family: linux.AF_UNIX, Name: path} }

// heir returns a child of p with another user. The child inherits the descriptors.
func heir(p *Process, pid int32, user uint32) *Process {
	child := p.Fork(pid, 0)
	child.SetIdentity(pid, credential.New(user, user+1), nil)
	return child
}

// family returns user 0's process in a tree with the directories "/jail" and "/open" that everybody may write, and "/private" of user 0.
func family(t *testing.T) *Process {
	t.Helper()
	p := New(Options{Credentials: Credentials{PID: 1}})
	for path, mode := range map[string]uint32{"/": 0o777, "/jail": 0o777, "/open": 0o777, "/private": 0o700} {
		if path != "/" {
			ok(t, p.MkdirAt(linux.AT_FDCWD, path, 0o700))
		}
		ok(t, p.ChmodAt(linux.AT_FDCWD, path, mode, 0))
	}
	return p
}

// unixSocket opens a Unix socket that does not block.
func unixSocket(t *testing.T, p *Process, typ int) int {
	t.Helper()
	return fd(t)(p.Socket(linux.AF_UNIX, typ|linux.SOCK_NONBLOCK, 0))
}

// jailed returns a child of p whose root and working directory are "/jail".
func jailed(t *testing.T, p *Process) *Process {
	t.Helper()
	child := heir(p, 2, 0)
	ok(t, child.Chroot("/jail"))
	ok(t, child.Chdir("/"))
	return child
}

func TestUnixBindByHeir(t *testing.T) {
	p := family(t)
	user := heir(p, 2, 1000)
	user.Umask(0o77)
	fsuid := heir(p, 3, 0)
	c := credential.New(0, 0)
	c.FSUID, c.FSGID = 500, 501
	fsuid.SetIdentity(3, c, nil)
	fsuid.Umask(0o27)
	elsewhere := heir(p, 4, 0)
	ok(t, elsewhere.Chdir("/open"))
	jail := jailed(t, p)
	for _, typ := range []int{linux.SOCK_STREAM, linux.SOCK_DGRAM, linux.SOCK_SEQPACKET} {
		for name, test := range map[string]struct {
			by       *Process
			to, path string
			mode     fs.Mode
			owner    [2]uint32
		}{
			"user":       {user, "a", "/a", 0o700, [2]uint32{1000, 1001}},
			"fsuid":      {fsuid, "b", "/b", 0o750, [2]uint32{500, 501}},
			"directory":  {elsewhere, "c", "/open/c", 0o755, [2]uint32{0, 1}},
			"jail":       {jail, "/d", "/jail/d", 0o755, [2]uint32{0, 1}},
			"relatively": {jail, "../e", "/jail/e", 0o755, [2]uint32{0, 1}},
		} {
			s := unixSocket(t, p, typ)
			child := test.by
			child.fds = p.fds.Copy()
			ok(t, child.Bind(s, unixName(test.to)))
			st, errno := p.StatAt(linux.AT_FDCWD, test.path, 0)
			if errno != 0 || st.Mode != fs.Socket|test.mode || st.UID != test.owner[0] || st.GID != test.owner[1] {
				t.Errorf("%s, type %d: %v, mode %o, owner %d:%d", name, typ, errno, st.Mode, st.UID, st.GID)
			}
			ok(t, p.UnlinkAt(linux.AT_FDCWD, test.path, 0))
		}
		s := unixSocket(t, p, typ)
		user.fds = p.fds.Copy()
		wantErrno(t, user.Bind(s, unixName("/private/a")), linux.EACCES, "a directory of another user")
	}
}

func TestUnixPermissionOfHeir(t *testing.T) {
	p := family(t)
	p.Umask(0o77)
	for _, path := range []string{"/", "/jail/"} {
		listener, datagram := unixSocket(t, p, linux.SOCK_STREAM), unixSocket(t, p, linux.SOCK_DGRAM)
		ok(t, p.Bind(listener, unixName(path+"s")))
		ok(t, p.Bind(datagram, unixName(path+"d")))
		ok(t, p.Listen(listener, 100))
	}
	only := unixSocket(t, p, linux.SOCK_STREAM)
	ok(t, p.Bind(only, unixName("/jail/inside")))
	ok(t, p.Listen(only, 100))
	outside := unixSocket(t, p, linux.SOCK_STREAM)
	ok(t, p.Bind(outside, unixName("/outside")))
	ok(t, p.Listen(outside, 100))
	elsewhere := heir(p, 4, 0)
	ok(t, elsewhere.Chdir("/jail"))
	for name, test := range map[string]struct {
		by       *Process
		path     string
		datagram string
		want     Errno
	}{
		"user":         {heir(p, 2, 1000), "/s", "/d", linux.EACCES},
		"root":         {heir(p, 2, 0), "/s", "/d", 0},
		"jail":         {jailed(t, p), "/s", "/d", 0},
		"inside":       {jailed(t, p), "/inside", "", 0},
		"outside":      {jailed(t, p), "/outside", "", linux.ENOENT},
		"up":           {jailed(t, p), "../outside", "", linux.ENOENT},
		"absolute":     {jailed(t, p), "/jail/s", "/jail/d", linux.ENOENT},
		"directory":    {elsewhere, "inside", "d", 0},
		"not from /":   {heir(p, 5, 0), "inside", "", linux.ENOENT},
		"made by user": {p, "/s", "/d", 0},
	} {
		maker := p
		if name == "made by user" {
			maker = heir(p, 6, 1000)
		}
		a, b, c := unixSocket(t, maker, linux.SOCK_STREAM), unixSocket(t, maker, linux.SOCK_DGRAM), unixSocket(t, maker, linux.SOCK_DGRAM)
		test.by.fds = maker.fds.Copy()
		wantErrno(t, test.by.Connect(a, unixName(test.path)), test.want, name+": connect")
		if test.datagram == "" {
			continue
		}
		wantErrno(t, test.by.Connect(b, unixName(test.datagram)), test.want, name+": connect of datagrams")
		_, errno := test.by.Send(c, []byte("x"), Outgoing{To: unixName(test.datagram)})
		wantErrno(t, errno, test.want, name+": sendto")
	}
}

func ids(pid, uid, gid int32) Credentials { return Credentials{PID: pid, UID: uid, GID: gid} }

// peerCredentials returns the credentials of SO_PEERCRED.
func peerCredentials(t *testing.T, p *Process, s int) Credentials {
	t.Helper()
	b, errno := p.GetSockOpt(s, linux.SOL_SOCKET, linux.SO_PEERCRED)
	ok(t, errno)
	return socket.ParseCredentials(b)
}

func TestUnixPeerIsCaller(t *testing.T) {
	nobody := ids(0, -1, -1)
	for _, typ := range []int{linux.SOCK_STREAM, linux.SOCK_SEQPACKET} {
		p := family(t)
		want := func(what string, s int, c Credentials) {
			t.Helper()
			if got := peerCredentials(t, p, s); got != c {
				t.Errorf("type %d, %s: %v, want %v", typ, what, got, c)
			}
		}
		l, first, second, third := unixSocket(t, p, typ), unixSocket(t, p, typ), unixSocket(t, p, typ), unixSocket(t, p, typ)
		ok(t, p.Bind(l, abstract("x")))
		want("not listening", l, nobody)
		want("not connected", first, nobody)
		ok(t, heir(p, 2, 1000).Listen(l, 5))
		want("listener", l, ids(2, 1000, 1001))
		ok(t, heir(p, 3, 2000).Connect(first, abstract("x")))
		accepted := fd(t)(acceptBy(heir(p, 9, 9000), p, l))
		want("the server's end", accepted, ids(3, 2000, 2001))
		want("the client's end", first, ids(2, 1000, 1001))
		ok(t, heir(p, 3, 2000).Connect(second, abstract("x")))
		ok(t, heir(p, 4, 3000).Listen(l, 5))
		want("connected before the second listen", second, ids(2, 1000, 1001))
		effective := credential.New(0, 0)
		effective.UID, effective.EUID, effective.FSUID, effective.GID, effective.EGID = 1, 2, 3, 4, 5
		by := p.Fork(7, 0)
		by.SetIdentity(7, effective, nil)
		ok(t, by.Connect(third, abstract("x")))
		want("connected after the second listen", third, ids(4, 3000, 3001))
		by.SetIdentity(7, credential.New(77, 77), nil)
		ok(t, by.Close(third))
		fd(t)(acceptBy(p, p, l))
		want("effective IDs at the time of connect", fd(t)(acceptBy(p, p, l)), ids(7, 2, 5))
	}
}

// acceptBy lets a process accept a connection, and returns the descriptor in the table of p.
func acceptBy(by, p *Process, l int) (int, Errno) {
	by.fds = p.fds
	s, _, errno := by.Accept4(l, 0)
	return s, errno
}

func TestUnixPairIsOfCaller(t *testing.T) {
	p := family(t)
	child := heir(p, 2, 1000)
	child.fds = p.fds
	for _, typ := range []int{linux.SOCK_STREAM, linux.SOCK_DGRAM, linux.SOCK_SEQPACKET} {
		a, b := unixPair(t, child, typ)
		for _, s := range []int{a, b} {
			if got := peerCredentials(t, p, s); got != ids(2, 1000, 1001) {
				t.Errorf("type %d: %v", typ, got)
			}
		}
	}
	to, from := unixSocket(t, p, linux.SOCK_DGRAM), unixSocket(t, p, linux.SOCK_DGRAM)
	ok(t, p.Bind(to, abstract("x")))
	ok(t, p.Connect(from, abstract("x")))
	if got := peerCredentials(t, p, from); got != ids(0, -1, -1) {
		t.Errorf("a datagram socket has no peer with credentials: %v", got)
	}
}

// All parts of a write that waits for room have the sender of the caller (SO_PASSCRED).
func TestUnixWriteThatWaitsHasSender(t *testing.T) {
	p := family(t)
	child := heir(p, 2, 1000)
	child.fds = p.fds
	a, b := unixPair(t, p, linux.SOCK_STREAM)
	ok(t, p.SetSockOpt(b, linux.SOL_SOCKET, linux.SO_PASSCRED, socket.IntValue(1)))
	const size = 3 * unix.DefaultBuffer
	written := make(chan Errno, 1)
	go func() {
		_, errno := child.Write(a, make([]byte, size))
		written <- cmp.Or(errno, child.Close(a)) // if the write has failed, Recv ends
	}()
	for got := 0; got < size; {
		r, errno := p.Recv(b, make([]byte, size), 0)
		ok(t, errno)
		got += r.N
		if len(r.Control) != 1 || socket.ParseCredentials(r.Control[0].Data) != ids(2, 1000, 1001) {
			t.Fatalf("after %d bytes: %+v", got, r.Control)
		}
	}
	ok(t, <-written)
}

// fchmod(2) of a Unix socket changes the permissions of the file that a later bind(2) creates. Only the creator of the socket, or the process that has accepted it, may change them.
func TestUnixPermissions(t *testing.T) {
	p := family(t)
	p.Umask(0o22)
	s := unixSocket(t, p, linux.SOCK_STREAM)
	modes := func(what string, want fs.Mode) {
		t.Helper()
		if st, errno := p.Fstat(s); errno != 0 || st.Mode != fs.Socket|want {
			t.Errorf("%s: %v, mode %o, want %o", what, errno, st.Mode, want)
		}
	}
	modes("new", 0o777)
	stranger := heir(p, 2, 1000)
	wantErrno(t, stranger.Fchmod(s, 0o777), linux.EPERM, "another user")
	own := unixSocket(t, stranger, linux.SOCK_DGRAM)
	wantErrno(t, stranger.Fchmod(own, 0o666), 0, "the creator")
	ok(t, p.Fchmod(s, 0o606))
	modes("changed", 0o606)
	ok(t, p.Bind(s, unixName("/s")))
	ok(t, p.Fchmod(s, 0o7640))
	modes("changed again", 0o7640)
	if st, _ := p.StatAt(linux.AT_FDCWD, "/s", 0); st.Mode != fs.Socket|0o604 {
		t.Errorf("the file has mode %o", st.Mode)
	}
	wantErrno(t, p.Fchmod(99, 0o600), linux.EBADF, "no file")

	ok(t, p.Listen(s, 1))
	acceptor := heir(p, 3, 1000)
	ok(t, p.Connect(unixSocket(t, p, linux.SOCK_STREAM), unixName("/s")))
	accepted, _, errno := acceptor.Accept4(s, 0)
	ok(t, errno)
	wantErrno(t, acceptor.Fchmod(accepted, 0o600), 0, "the process that has accepted the connection")
}
