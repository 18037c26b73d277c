// Command raw makes the system calls of the sockets API itself, as programs with an event loop of their own do.
package main

import (
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"example.com/guest/internal/check"
)

func main() {
	blocking()
	stackBuffers()
	vectors()
	errors()
	epollLevel()
	epollEdge()
	epollWithHost()
	pollBoth()
	duplicates()
	sequenced()
	names()
	requests()
	secondResult()
	filter()
	times()
	frames()
	check.Done()
}

func errno(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

// connection returns both descriptors of a TCP connection, in blocking mode.
func connection() (client, server int) {
	l, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	check.Nil(err, "socket")
	check.Nil(syscall.Bind(l, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), "bind")
	check.Nil(syscall.Listen(l, 10), "listen")
	sa, err := syscall.Getsockname(l)
	check.Nil(err, "getsockname")
	client, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	check.Nil(err, "socket")
	check.Nil(syscall.Connect(client, sa), "connect")
	server, _, err = syscall.Accept(l)
	check.Nil(err, "accept")
	check.Nil(syscall.Close(l), "close")
	check.Nil(syscall.SetsockoptInt(client, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1), "no delay")
	return client, server
}

func closeAll(fds ...int) {
	for _, fd := range fds {
		check.Nil(syscall.Close(fd), "close")
	}
}

// blocking: a call that blocks parks the goroutine instead of the thread.
func blocking() {
	client, server := connection()
	got := make(chan string)
	for range 100 { // more goroutines than threads
		go func() {
			b := make([]byte, 5)
			n, err := syscall.Read(server, b)
			check.Nil(err, "read")
			got <- string(b[:n])
		}()
	}
	time.Sleep(10 * time.Millisecond)
	for range 100 {
		_, err := syscall.Write(client, []byte("hello"))
		check.Nil(err, "write")
		check.Equal(<-got, "hello", "blocking read")
	}
	done := make(chan int)
	go func() {
		n, err := syscall.Write(client, make([]byte, 16<<20))
		check.Nil(err, "long write")
		done <- n
	}()
	b := make([]byte, 1<<20)
	for total := 0; total < 16<<20; {
		n, err := syscall.Read(server, b)
		check.Nil(err, "read")
		total += n
	}
	check.Equal(<-done, 16<<20, "a blocking write writes all")
	tv := syscall.Timeval{Usec: 10_000}
	check.Nil(syscall.SetsockoptTimeval(server, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &tv), "SO_RCVTIMEO")
	_, err := syscall.Read(server, b)
	check.Equal(err, error(syscall.EAGAIN), "read that timed out")
	closeAll(client, server)
}

// stackBuffers: the buffer of a call is on a goroutine's stack, which moves while the call blocks.
func stackBuffers() {
	client, server := connection()
	var out [64]byte
	copy(out[:], "from the stack")
	n, _, e := syscall.Syscall(syscall.SYS_WRITE, uintptr(client), uintptr(unsafe.Pointer(&out)), uintptr(len(out)))
	check.That(n == 64 && e == 0, "write: %d, %v", n, e)
	var in [64]byte
	n, _, e = syscall.Syscall(syscall.SYS_READ, uintptr(server), uintptr(unsafe.Pointer(&in)), uintptr(len(in)))
	check.That(n == 64 && e == 0 && in == out, "read: %d, %v, %q", n, e, in)

	done := make(chan bool)
	go func() {
		var small [16]byte
		n, _, e := syscall.Syscall(syscall.SYS_READ, uintptr(server), uintptr(unsafe.Pointer(&small)), uintptr(len(small)))
		done <- n == 4 && e == 0 && string(small[:4]) == "moved"[:4] && deep(1000) == 1000
	}()
	time.Sleep(10 * time.Millisecond)
	check.Equal(deep(10_000), 10_000, "deep")
	syscall.Write(client, []byte("move"))
	check.That(<-done, "read into a stack that moved")
	closeAll(client, server)
}

// deep grows the stack.
func deep(n int) int {
	var pad [128]byte
	pad[n%128] = 1
	if n == 0 {
		return int(pad[1])
	}
	return deep(n-1) + int(pad[n%128])
}

func vectors() {
	client, server := connection()
	a, b := []byte("one "), []byte("two")
	iov := []syscall.Iovec{{Base: &a[0], Len: 4}, {}, {Base: &b[0], Len: 3}}
	n, _, e := syscall.Syscall(syscall.SYS_WRITEV, uintptr(client), uintptr(unsafe.Pointer(&iov[0])), 3)
	check.That(n == 7 && e == 0, "writev: %d, %v", n, e)
	x, y := make([]byte, 2), make([]byte, 10)
	iov = []syscall.Iovec{{Base: &x[0], Len: 2}, {Base: &y[0], Len: 10}}
	n, _, e = syscall.Syscall(syscall.SYS_READV, uintptr(server), uintptr(unsafe.Pointer(&iov[0])), 2)
	check.That(n == 7 && e == 0 && string(x) == "on" && string(y[:5]) == "e two", "readv: %d, %v, %q %q", n, e, x, y)
	closeAll(client, server)
}

func errors() {
	client, server := connection()
	_, _, e := syscall.Syscall(syscall.SYS_READ, uintptr(client), 0, 10)
	check.Equal(e, syscall.EFAULT, "read to nil")
	_, _, e = syscall.Syscall(syscall.SYS_WRITE, uintptr(client), 1, 10)
	check.Equal(e, syscall.EFAULT, "write from the first page")
	_, err := syscall.Seek(client, 0, 0)
	check.Equal(err, error(syscall.ESPIPE), "lseek")
	check.Equal(syscall.Connect(client, &syscall.SockaddrInet4{Port: 1}), error(syscall.EISCONN), "connect again")
	var st syscall.Stat_t
	check.Nil(syscall.Fstat(client, &st), "fstat")
	check.Equal(st.Mode&syscall.S_IFMT, syscall.S_IFSOCK, "type")
	closeAll(client)
	_, err = syscall.Read(client, make([]byte, 1))
	check.Equal(err, error(syscall.EBADF), "read of a closed descriptor")
	n, err := syscall.Read(server, make([]byte, 1))
	check.That(n == 0 && err == nil, "end of the stream: %d, %v", n, err)
	closeAll(server)
	for _, c := range []struct {
		domain, typ, protocol int
		want                  syscall.Errno
	}{
		{syscall.AF_BLUETOOTH, syscall.SOCK_RAW, 0, syscall.EAFNOSUPPORT},
		{syscall.AF_INET, syscall.SOCK_STREAM, 262, syscall.EPROTONOSUPPORT},
		{syscall.AF_UNIX, 7, 0, syscall.ESOCKTNOSUPPORT},
		{syscall.AF_UNIX, 77, 0, syscall.EINVAL}, // 77 has a bit that is neither part of a type nor a flag
	} {
		_, err := syscall.Socket(c.domain, c.typ, c.protocol)
		check.Equal(err, error(c.want), "socket")
	}
}

func epollCtl(ep, op, fd int, events uint32) {
	ev := syscall.EpollEvent{Events: events, Fd: int32(fd), Pad: 7}
	check.Nil(syscall.EpollCtl(ep, op, fd, &ev), "epoll_ctl")
}

func wait(ep int, ms int) []syscall.EpollEvent {
	events := make([]syscall.EpollEvent, 8)
	n, err := syscall.EpollWait(ep, events, ms)
	check.Nil(err, "epoll_wait")
	return events[:n]
}

func epollLevel() {
	client, server := connection()
	ep, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	check.Nil(err, "epoll_create1")
	epollCtl(ep, syscall.EPOLL_CTL_ADD, server, syscall.EPOLLIN)
	check.Equal(len(wait(ep, 0)), 0, "events before data")
	syscall.Write(client, []byte("abc"))
	for range 2 {
		got := wait(ep, 1000)
		check.That(len(got) == 1 && got[0].Fd == int32(server) && got[0].Pad == 7 && got[0].Events == syscall.EPOLLIN, "events: %v", got)
	}
	syscall.Read(server, make([]byte, 10))
	check.Equal(len(wait(ep, 0)), 0, "events after reading")
	epollCtl(ep, syscall.EPOLL_CTL_MOD, server, syscall.EPOLLIN|syscall.EPOLLOUT|syscall.EPOLLONESHOT)
	got := wait(ep, 1000)
	check.That(len(got) == 1 && got[0].Events == syscall.EPOLLOUT, "writable: %v", got)
	check.Equal(len(wait(ep, 0)), 0, "one shot")
	go func() {
		time.Sleep(10 * time.Millisecond)
		syscall.Close(client)
	}()
	epollCtl(ep, syscall.EPOLL_CTL_MOD, server, syscall.EPOLLRDHUP)
	got = wait(ep, 5000)
	check.That(len(got) == 1 && got[0].Events == syscall.EPOLLRDHUP, "hang-up: %v", got)
	closeAll(server)
	check.Equal(len(wait(ep, 0)), 0, "a closed file is gone")
	closeAll(ep)
}

// epollEdge: with EPOLLET each arrival is reported exactly once, even if the data before has not all been read.
func epollEdge() {
	client, server := connection()
	check.Nil(syscall.SetNonblock(server, true), "nonblock")
	ep, err := syscall.EpollCreate(1)
	check.Nil(err, "epoll_create")
	const edge = 1 << 31
	epollCtl(ep, syscall.EPOLL_CTL_ADD, server, syscall.EPOLLIN|edge)
	b := make([]byte, 100)
	for range 50 {
		syscall.Write(client, []byte("data"))
		check.Equal(len(wait(ep, 5000)), 1, "edge")
		check.Equal(len(wait(ep, 0)), 0, "edge told twice")
		n, err := syscall.Read(server, b) // a short read, not up to EAGAIN
		check.That(n == 4 && err == nil, "read: %d, %v", n, err)
	}
	closeAll(client, server, ep)
}

// epollWithHost: an epoll set contains a pipe of the host and a socket of Loam.
func epollWithHost() {
	client, server := connection()
	var p [2]int
	check.Nil(syscall.Pipe2(p[:], syscall.O_NONBLOCK), "pipe")
	ep, err := syscall.EpollCreate1(0)
	check.Nil(err, "epoll_create1")
	epollCtl(ep, syscall.EPOLL_CTL_ADD, server, syscall.EPOLLIN)
	epollCtl(ep, syscall.EPOLL_CTL_ADD, p[0], syscall.EPOLLIN)
	for i := range 20 {
		w, r := p[1], p[0]
		if i%2 == 1 {
			w, r = client, server
		}
		go func() {
			time.Sleep(time.Millisecond)
			syscall.Write(w, []byte("x"))
		}()
		got := wait(ep, 5000)
		check.That(len(got) == 1 && got[0].Fd == int32(r), "round %d: %v", i, got)
		syscall.Read(r, make([]byte, 1))
		check.Equal(len(wait(ep, 0)), 0, "after reading")
	}
	epollCtl(ep, syscall.EPOLL_CTL_DEL, p[0], 0)
	closeAll(client, server, ep, p[0], p[1])
}

type pollFD struct {
	fd              int32
	events, revents int16
}

func pollBoth() {
	client, server := connection()
	r, w, err := os.Pipe()
	check.Nil(err, "pipe")
	fds := []pollFD{{int32(server), 1, 0}, {int32(r.Fd()), 1, 0}, {-1, 1, 9}, {1<<24 + 5000, 1, 0}}
	n, _, e := syscall.Syscall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&fds[0])), 4, 0)
	check.That(n == 1 && e == 0 && fds[3].revents == 0x20 && fds[2].revents == 0, "poll: %d, %v, %v", n, e, fds)
	fds = fds[:2]
	go func() {
		time.Sleep(10 * time.Millisecond)
		w.Write([]byte("x"))
	}()
	n, _, e = syscall.Syscall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&fds[0])), 2, 5000)
	check.That(n == 1 && e == 0 && fds[1].revents == 1, "poll for the pipe: %d, %v, %v", n, e, fds)
	go func() {
		time.Sleep(10 * time.Millisecond)
		syscall.Write(client, []byte("x"))
	}()
	fds = fds[:1]
	ts := syscall.Timespec{Sec: 5}
	n, _, e = syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	check.That(n == 1 && e == 0 && fds[0].revents == 1, "poll for the socket: %d, %v, %v", n, e, fds)

	sets := make([]uint64, (server+64)/64)
	sets[server/64] = 1 << (server % 64)
	n, _, e = syscall.Syscall6(syscall.SYS_SELECT, uintptr(server+1), uintptr(unsafe.Pointer(&sets[0])), 0, 0, 0, 0)
	check.That(n == 1 && e == 0 && sets[server/64] == 1<<(server%64), "select: %d, %v", n, e)
	closeAll(client, server)
	r.Close()
	w.Close()
}

func duplicates() {
	client, server := connection()
	d, err := syscall.Dup(client)
	check.Nil(err, "dup")
	check.Nil(syscall.Dup2(client, d+10), "dup2")
	syscall.CloseOnExec(d)
	flags, _, e := syscall.Syscall(syscall.SYS_FCNTL, uintptr(d), syscall.F_GETFD, 0)
	check.That(flags == syscall.FD_CLOEXEC && e == 0, "F_GETFD: %d, %v", flags, e)
	flags, _, _ = syscall.Syscall(syscall.SYS_FCNTL, uintptr(client), syscall.F_GETFD, 0)
	check.Equal(flags, 0, "F_GETFD of the first")
	closeAll(client, d)
	_, err = syscall.Write(d+10, []byte("last"))
	check.Nil(err, "write to the last duplicate")
	b := make([]byte, 10)
	n, err := syscall.Read(server, b)
	check.That(n == 4 && err == nil, "read: %d, %v", n, err)
	var count int32
	_, _, e = syscall.Syscall(syscall.SYS_IOCTL, uintptr(server), 0x541b, uintptr(unsafe.Pointer(&count)))
	check.Nil(errno(e), "FIONREAD")
	check.Equal(count, 0, "FIONREAD")
	closeAll(d + 10)
	n, _ = syscall.Read(server, b)
	check.Equal(n, 0, "the end, when the last duplicate has gone")
	closeAll(server)
}

// requests: ioctl(2) of an interface; and an argument that is a number, not a pointer, is not dereferenced.
func requests() {
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	check.Nil(err, "socket")
	defer closeAll(s)
	var request [40]byte // struct ifreq
	copy(request[:], "lo")
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(s), syscall.SIOCGIFINDEX, uintptr(unsafe.Pointer(&request)))
	check.That(e == 0 && request[16] == 1, "SIOCGIFINDEX of lo: %d, %v", request[16], e)
	copy(request[:], "none")
	_, _, e = syscall.Syscall(syscall.SYS_IOCTL, uintptr(s), syscall.SIOCGIFINDEX, uintptr(unsafe.Pointer(&request)))
	check.Equal(e, syscall.ENODEV, "SIOCGIFINDEX of none")
	_, _, e = syscall.Syscall(syscall.SYS_IOCTL, uintptr(s), syscall.TIOCSCTTY, 1)
	check.Equal(e, syscall.ENOTTY, "TIOCSCTTY")
}

// secondResult: on Linux, the register of the second result still holds the third argument after a call.
func secondResult() {
	_, second, e := syscall.Syscall(syscall.SYS_FCNTL, 1, syscall.F_GETFD, 77)
	check.That(second == 77 && e == 0, "the second result: %d, %v", second, e)
	_, second, e = syscall.RawSyscall6(syscall.SYS_LISTEN, 1<<20, 0, 77, 0, 0, 0)
	check.That(second == 0 && e == syscall.EBADF, "the second result of an error: %d, %v", second, e)
}

// filter: a socket filter cuts a datagram to three bytes behind the UDP header.
func filter() {
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	check.Nil(err, "socket")
	defer closeAll(s)
	check.Nil(syscall.Bind(s, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), "bind")
	sa, err := syscall.Getsockname(s)
	check.Nil(err, "getsockname")
	check.Nil(syscall.AttachLsf(s, []syscall.SockFilter{{Code: syscall.BPF_RET, K: 8 + 3}}), "SO_ATTACH_FILTER")
	check.Nil(syscall.Sendto(s, []byte("yes and more"), 0, sa), "sendto")
	n, _, err := syscall.Recvfrom(s, make([]byte, 20), 0)
	check.That(n == 3 && err == nil, "recvfrom: %d, %v", n, err)
	check.Nil(syscall.DetachLsf(s), "SO_DETACH_FILTER")
}

// times: utime(2), for which package syscall has a function that package os does not use.
func times() {
	name := os.TempDir() + "/loam-raw-times"
	check.Nil(os.WriteFile(name, nil, 0o600), "a file")
	defer os.Remove(name)
	check.Nil(syscall.Utime(name, &syscall.Utimbuf{Actime: 5, Modtime: 7}), "utime")
	info, err := os.Stat(name)
	check.Nil(err, "stat")
	check.Equal(info.ModTime().Unix(), 7, "the time of it")
}

func sequenced() {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET, 0)
	check.Nil(err, "socketpair")
	for _, m := range []string{"one", "two"} {
		_, err = syscall.Write(fds[0], []byte(m))
		check.Nil(err, "write")
	}
	b := make([]byte, 2)
	n, _, flags, _, err := syscall.Recvmsg(fds[1], b, nil, 0)
	check.That(n == 2 && flags&syscall.MSG_TRUNC != 0 && err == nil, "recvmsg: %d, %x, %v", n, flags, err)
	n, _, err = syscall.Recvfrom(fds[1], make([]byte, 10), syscall.MSG_PEEK)
	check.That(n == 3 && err == nil, "peek: %d, %v", n, err)
	cred, err := syscall.GetsockoptUcred(fds[0], syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	check.That(err == nil && int(cred.Pid) == os.Getpid(), "SO_PEERCRED: %v, %v", cred, err)
	closeAll(fds[0])
	syscall.Read(fds[1], make([]byte, 10))
	n, err = syscall.Read(fds[1], b)
	check.That(n == 0 && err == nil, "end: %d, %v", n, err)
	_, err = syscall.Write(fds[1], b)
	check.Equal(err, error(syscall.EPIPE), "nobody reads")
	closeAll(fds[1])
}

// names: the release of uname(2) begins with the host's, by which programs decide which calls they may make, and ends
// in "-loam". The machine's name is unchanged.
func names() {
	var u syscall.Utsname
	check.Nil(syscall.Uname(&u), "uname")
	release := text(u.Release[:])
	host, err := os.ReadFile("/proc/sys/kernel/osrelease")
	check.Nil(err, "osrelease")
	check.Equal(release, strings.TrimSpace(string(host)), "release")
	check.That(strings.HasSuffix(release, "-loam"), "release %q", release)
	check.Equal(text(u.Sysname[:]), "Linux", "system")
	check.Equal(text(u.Machine[:]), "x86_64", "machine")
	name, err := os.Hostname()
	check.Nil(err, "hostname")
	check.Equal(text(u.Nodename[:]), name, "node")
	_, _, e := syscall.RawSyscall(syscall.SYS_UNAME, 0, 0, 0)
	check.Equal(e, syscall.EFAULT, "uname to nowhere")
}

func text(field []int8) string {
	var b strings.Builder
	for _, c := range field {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}
