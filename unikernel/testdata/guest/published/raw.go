package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// Functions of deeds that make system calls themselves, or share descriptors.

// take returns a duplicate of the connection's descriptor, which the caller owns, and closes the connection.
func take(c *net.TCPConn) (int, error) {
	defer c.Close()
	return control(c, syscall.Dup)
}

// options sets socket options and reads them back.
func options(c *net.TCPConn) error {
	defer c.Close()
	_, err := control(c, func(fd int) (int, error) {
		for _, o := range []struct{ level, name, value int }{
			{syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 0}, {syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1},
			{syscall.IPPROTO_TCP, syscall.TCP_CORK, 1}, {syscall.IPPROTO_TCP, syscall.TCP_CORK, 0},
			{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 0}, {syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
			{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 77}, {syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 7},
			{syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 3}, {syscall.IPPROTO_IP, syscall.IP_TOS, 0x10}, {syscall.IPPROTO_IP, syscall.IP_TTL, 50},
			{syscall.SOL_SOCKET, syscall.SO_PRIORITY, 3}, {syscall.IPPROTO_TCP, 18, 5000},
			{syscall.IPPROTO_TCP, syscall.TCP_LINGER2, 7}, {syscall.IPPROTO_TCP, syscall.TCP_LINGER2, -1},
		} {
			if err := syscall.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
				return 0, fmt.Errorf("option %d of %d: %w", o.name, o.level, err)
			}
			if n, err := syscall.GetsockoptInt(fd, o.level, o.name); n != o.value || err != nil {
				return 0, fmt.Errorf("option %d of %d: %d, %v; want %d", o.name, o.level, n, err, o.value)
			}
		}
		for name, want := range map[int]int{
			syscall.SO_TYPE: syscall.SOCK_STREAM, syscall.SO_ACCEPTCONN: 0, syscall.SO_ERROR: 0, 39: syscall.AF_INET,
			38: syscall.IPPROTO_TCP, syscall.SO_REUSEADDR: 1,
		} {
			if n, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, name); n != want || err != nil {
				return 0, fmt.Errorf("option %d: %d, %v; want %d", name, n, err, want)
			}
		}
		if err := syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1, Linger: 5}); err != nil {
			return 0, err
		}
		if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF, 50000); err != nil {
			return 0, err
		}
		if n, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF); n != 100000 || err != nil {
			return 0, fmt.Errorf("a buffer of 50000: %d, %v", n, err)
		}
		if flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFL, 0); errno != 0 || flags&syscall.O_NONBLOCK == 0 {
			return 0, fmt.Errorf("flags %#x, %v", flags, errno)
		}
		var st syscall.Stat_t
		if err := syscall.Fstat(fd, &st); err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
			return 0, fmt.Errorf("fstat: mode %#o, %v", st.Mode, err)
		}
		if err := syscall.Listen(fd, 1); err != syscall.EINVAL {
			return 0, fmt.Errorf("listen: %v", err)
		}
		if _, _, err := syscall.Accept(fd); err != syscall.EINVAL {
			return 0, fmt.Errorf("accept: %v", err)
		}
		if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: 1, Addr: [4]byte{127, 0, 0, 1}}); err != syscall.EISCONN {
			return 0, fmt.Errorf("connect: %v", err)
		}
		return 0, nil
	})
	if err == nil {
		_, err = c.Write([]byte("set"))
	}
	return err
}

// info reads TCP_INFO. Its first byte is the state.
func info(c *net.TCPConn) error {
	defer c.Close()
	b := make([]byte, 256)
	n := uint32(len(b))
	_, err := control(c, func(fd int) (int, error) {
		_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, uintptr(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO,
			uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&n)), 0)
		if errno != 0 {
			return 0, errno
		}
		return 0, nil
	})
	if err == nil && (n < 100 || b[0] != 1) {
		err = fmt.Errorf("%d bytes, state %d", n, b[0])
	}
	if err == nil {
		_, err = c.Write([]byte("established"))
	}
	return err
}

// file converts the connection to a file and back to a connection, and closes the first one.
func file(c *net.TCPConn) error {
	f, err := c.File()
	if err != nil {
		return err
	}
	again, err := net.FileConn(f)
	if err := errors.Join(err, c.Close()); err != nil {
		return err
	}
	if _, err := f.Write([]byte("by the file ")); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	again.SetDeadline(time.Now().Add(patience))
	return echo(again.(*net.TCPConn))
}

// twice reads one connection in two goroutines, by two descriptors. Each line must arrive in one read of one of them;
// otherwise both might receive a part.
func twice(c *net.TCPConn) error {
	f, err := c.File()
	if err != nil {
		return err
	}
	f.SetDeadline(time.Now().Add(patience))
	lines := make(chan string)
	for _, r := range []io.Reader{c, f} {
		go func() {
			b := make([]byte, 16)
			n, err := r.Read(b)
			lines <- fmt.Sprint(string(b[:n]), err)
		}()
	}
	for range 2 {
		time.Sleep(20 * time.Millisecond)
		if _, err := c.Write([]byte("next\n")); err != nil {
			return err
		}
		if got := <-lines; got != "line\n<nil>" {
			return errors.New(got)
		}
	}
	_, err = c.Write([]byte("both"))
	return errors.Join(err, f.Close(), c.Close())
}

// pass sends the connection's descriptor to itself over a Unix socket, and answers by the descriptor that it receives.
func pass(c *net.TCPConn) error {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	fd, err := take(c)
	if err != nil {
		return err
	}
	if err := syscall.Sendmsg(fds[0], []byte("x"), syscall.UnixRights(fd), nil, 0); err != nil {
		return err
	}
	syscall.Close(fd)
	control := make([]byte, 100)
	_, n, _, _, err := syscall.Recvmsg(fds[1], make([]byte, 1), control, 0)
	if err != nil {
		return err
	}
	list, err := syscall.ParseSocketControlMessage(control[:n])
	if err != nil {
		return err
	}
	got, err := syscall.ParseUnixRights(&list[0])
	if err != nil {
		return err
	}
	_, err = syscall.Write(got[0], []byte("passed"))
	return errors.Join(err, syscall.Close(got[0]), syscall.Close(fds[0]), syscall.Close(fds[1]))
}

// blocking reads and writes in blocking mode.
func blocking(c *net.TCPConn) error {
	fd, err := take(c)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if err := syscall.SetNonblock(fd, false); err != nil {
		return err
	}
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Usec: 30000}); err != nil {
		return err
	}
	b := make([]byte, 4)
	if _, err := syscall.Read(fd, b); err != syscall.EAGAIN {
		return fmt.Errorf("a read with a timeout: %v", err)
	}
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 20}); err != nil {
		return err
	}
	if _, err := syscall.Write(fd, []byte("go\n")); err != nil {
		return err
	}
	if n, _, err := syscall.Recvfrom(fd, b, syscall.MSG_WAITALL); n != 4 || err != nil {
		return fmt.Errorf("all of 4 bytes: %d, %v", n, err)
	}
	big := make([]byte, 8<<20) // more than the buffers hold, so the write blocks until the client reads
	if n, err := syscall.Write(fd, big); n != len(big) || err != nil {
		return fmt.Errorf("%d of %d bytes: %v", n, len(big), err)
	}
	return nil
}

// level and edge wait for data by an epoll set, level-triggered and edge-triggered.
func level(c *net.TCPConn) error { return byEpoll(c, 0) }
func edge(c *net.TCPConn) error  { return byEpoll(c, 1<<31) }

// waitEpoll is epoll_wait(2). It starts again after a signal: the Go runtime preempts threads by signals, and
// Linux does not restart this call.
func waitEpoll(set int, events []syscall.EpollEvent, ms int) (int, error) {
	for {
		if n, err := syscall.EpollWait(set, events, ms); err != syscall.EINTR {
			return n, err
		}
	}
}

func byEpoll(c *net.TCPConn, mode uint32) error {
	fd, err := take(c)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	set, err := syscall.EpollCreate1(0)
	if err != nil {
		return err
	}
	defer syscall.Close(set)
	ev := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP | mode, Fd: 7}
	if err := syscall.EpollCtl(set, syscall.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return err
	}
	events := make([]syscall.EpollEvent, 4)
	if n, err := waitEpoll(set, events, 20); n != 0 || err != nil {
		return fmt.Errorf("events before there are any: %d, %v", n, err)
	}
	for round := range 3 {
		if _, err := syscall.Write(fd, []byte("go\n")); err != nil {
			return err
		}
		if n, err := waitEpoll(set, events, int(patience/time.Millisecond)); n != 1 || err != nil || events[0].Fd != 7 || events[0].Events != syscall.EPOLLIN {
			return fmt.Errorf("round %d: %d, %v, %+v", round, n, err, events[0])
		}
		want := 1 // unread data is reported again only if level-triggered
		if mode != 0 {
			want = 0
		}
		if n, err := waitEpoll(set, events, 20); n != want || err != nil {
			return fmt.Errorf("round %d, again: %d, %v", round, n, err)
		}
		if n, err := syscall.Read(fd, make([]byte, 100)); n != 5 || err != nil {
			return fmt.Errorf("round %d: read %d, %v", round, n, err)
		}
	}
	syscall.Write(fd, []byte("end\n"))
	if n, err := waitEpoll(set, events, int(patience/time.Millisecond)); n != 1 || err != nil || events[0].Events != syscall.EPOLLIN|syscall.EPOLLRDHUP {
		return fmt.Errorf("the end: %d, %v, %#x", n, err, events[0].Events)
	}
	return nil
}

// pollFD is struct pollfd.
type pollFD struct {
	fd              int32
	events, revents int16
}

// poll waits for data by poll(2).
func poll(c *net.TCPConn) error {
	fd, err := take(c)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	p := pollFD{fd: int32(fd), events: 1} // POLLIN
	wait := func(ms int) (uintptr, syscall.Errno) {
		for {
			n, _, errno := syscall.Syscall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(ms))
			if errno != syscall.EINTR { // Linux does not restart poll after a signal
				return n, errno
			}
		}
	}
	if n, errno := wait(20); n != 0 || errno != 0 {
		return fmt.Errorf("before there is anything: %d, %v", n, errno)
	}
	if _, err := syscall.Write(fd, []byte("go\n")); err != nil {
		return err
	}
	if n, errno := wait(20000); n != 1 || errno != 0 || p.revents != 1 {
		return fmt.Errorf("%d, %v, %#x", n, errno, p.revents)
	}
	p.events = 4 // POLLOUT
	if n, errno := wait(20000); n != 1 || errno != 0 || p.revents != 4 {
		return fmt.Errorf("for writing: %d, %v, %#x", n, errno, p.revents)
	}
	_, err = syscall.Write(fd, []byte("ready"))
	return err
}

// peek reads data twice, by MSG_PEEK and then without.
func peek(c *net.TCPConn) error {
	fd, err := take(c)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if err := syscall.SetNonblock(fd, false); err != nil {
		return err
	}
	b := make([]byte, 10)
	if n, _, err := syscall.Recvfrom(fd, b, syscall.MSG_PEEK); err != nil || n == 0 {
		return fmt.Errorf("peek: %d, %v", n, err)
	}
	if _, _, err := syscall.Recvfrom(fd, b, syscall.MSG_WAITALL); err != nil {
		return err
	}
	if _, _, err := syscall.Recvfrom(fd, b, syscall.MSG_DONTWAIT); err != syscall.EAGAIN {
		return fmt.Errorf("without waiting: %v", err)
	}
	return syscall.Sendto(fd, b, syscall.MSG_NOSIGNAL, nil)
}

// urgent receives and sends an urgent byte.
func urgent(c *net.TCPConn) error {
	fd, err := take(c)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	p := pollFD{fd: int32(fd), events: 2} // POLLPRI
	if n, _, errno := syscall.Syscall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, 20000); n != 1 || errno != 0 {
		return fmt.Errorf("waiting for it: %d, %v", n, errno)
	}
	b := make([]byte, 2)
	if n, _, err := syscall.Recvfrom(fd, b, syscall.MSG_OOB); n != 1 || b[0] != '!' || err != nil {
		return fmt.Errorf("%d, %q, %v", n, b[0], err)
	}
	_, err = syscall.SendmsgN(fd, []byte("?"), nil, nil, syscall.MSG_OOB)
	return err
}

// mark reads past urgent data. A read must stop in front of it.
func mark(c *net.TCPConn) error {
	defer c.Close()
	fmt.Fprintln(c, "go")
	time.Sleep(50 * time.Millisecond) // long enough for all data to arrive, as a rule
	var all []byte
	for b := make([]byte, 16); len(all) < 4; {
		n, err := c.Read(b)
		if err != nil {
			return fmt.Errorf("after %q: %w", all, err)
		}
		all = append(all, b[:n]...)
	}
	_, err := c.Write(all)
	return err
}

// queued sends the number of bytes that can be read (FIONREAD).
func queued(c *net.TCPConn) error {
	defer c.Close()
	var n int32
	for end := time.Now().Add(patience); n != 5 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		_, err := control(c, func(fd int) (int, error) {
			_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), 0x541b, uintptr(unsafe.Pointer(&n))) // FIONREAD
			return 0, errnoError(errno)
		})
		if err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(c, n)
	io.ReadFull(c, make([]byte, 5))
	return err
}

func errnoError(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

// second listens on the second port with a backlog of one, and accepts one connection in blocking mode. On request it
// closes the listener, while another connection waits to be accepted.
func second(c *net.TCPConn) error {
	defer c.Close()
	l, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	port, _ := strconv.Atoi(os.Args[2])
	syscall.SetsockoptInt(l, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	syscall.SetsockoptInt(l, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1)
	if err := errors.Join(syscall.Bind(l, &syscall.SockaddrInet4{Port: port}), syscall.Listen(l, 1)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("listens\n")); err != nil {
		return err
	}
	fd, _, err := syscall.Accept4(l, 0)
	if err != nil {
		return err
	}
	if n, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE); n != 1 || err != nil {
		return fmt.Errorf("an option of the listener: %d, %v", n, err)
	}
	if _, err := syscall.Write(fd, []byte("accepted")); err != nil {
		return err
	}
	syscall.Close(fd)
	if _, err := c.Write([]byte("accepted\n")); err != nil {
		return err
	}
	if _, err := readLine(c); err != nil {
		return err
	}
	if err := syscall.Close(l); err != nil {
		return err
	}
	_, err = c.Write([]byte("closed\n"))
	return err
}

// reach tries to use the host's socket of a connection, which the client has reset, to connect to a port of the host.
// It uses the numbers of host descriptors, which in the program are 1<<24 higher than on the host
// (unikernel/rt.HostFD).
func reach(c *net.TCPConn) error {
	defer c.Close()
	line, err := readLine(c)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(line)
	if err != nil {
		return err
	}
	if _, err := c.Write([]byte("go\n")); err != nil {
		return err
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("read: %v", err)
	}
	const fastOpen = 0x20000000 // MSG_FASTOPEN
	to := &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	for fd := 1 << 24; fd < 1<<24+64; fd++ {
		for name, err := range map[string]error{
			"connect": syscall.Connect(fd, to),
			"sendto":  syscall.Sendto(fd, []byte("x"), fastOpen, to),
			"sendmsg": syscall.Sendmsg(fd, []byte("x"), nil, to, fastOpen),
		} {
			if err == nil {
				return fmt.Errorf("%s of descriptor %d of the host", name, fd-1<<24)
			}
		}
	}
	fmt.Println("reached nothing")
	return nil
}
