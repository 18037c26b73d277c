// Command sockets uses package net in the ways that programs do.
package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/guest/internal/check"
)

func main() {
	tcpEcho()
	tcpErrors()
	tcpDeadlines()
	tcpOptions()
	closeWakes()
	udp()
	pathMTU()
	groups()
	unixStream()
	unixDatagram()
	passFile()
	interfaces()
	files()
	check.Done()
}

// pair returns both ends of a TCP connection within the program.
func pair() (client, server *net.TCPConn) {
	l, err := net.Listen("tcp", ":0")
	check.Nil(err, "listen")
	defer l.Close()
	done := make(chan net.Conn)
	go func() {
		c, err := l.Accept()
		check.Nil(err, "accept")
		done <- c
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c, err := net.Dial("tcp", "localhost:"+port)
	check.Nil(err, "dial")
	return c.(*net.TCPConn), (<-done).(*net.TCPConn)
}

func tcpEcho() {
	client, server := pair()
	check.Equal(client.LocalAddr().String(), server.RemoteAddr().String(), "client's address")
	check.Equal(client.RemoteAddr().String(), server.LocalAddr().String(), "server's address")
	const size = 8 << 20
	var wg sync.WaitGroup
	wg.Go(func() {
		n, err := io.Copy(server, server)
		check.That(n == size && err == nil, "echoed %d, %v", n, err)
		server.CloseWrite()
	})
	wg.Go(func() {
		buf := make([]byte, 100_000)
		for sent := 0; sent < size; {
			n, err := client.Write(buf[:min(len(buf), size-sent)])
			check.Nil(err, "write")
			sent += n
		}
		client.CloseWrite()
	})
	n, err := io.Copy(io.Discard, client)
	check.That(n == size && err == nil, "came back: %d, %v", n, err)
	wg.Wait()
	client.Close()
	server.Close()
	_, err = client.Read(make([]byte, 1))
	check.That(errors.Is(err, net.ErrClosed), "read of a closed connection: %v", err)
}

func tcpErrors() {
	_, err := net.Dial("tcp", "127.0.0.1:1")
	check.That(errors.Is(err, syscall.ECONNREFUSED), "nobody listens: %v", err)
	_, err = net.Dial("tcp", "192.0.2.1:80")
	check.That(errors.Is(err, syscall.ENETUNREACH), "no network: %v", err)
	_, err = net.Dial("tcp", "[::1]:80")
	check.That(errors.Is(err, syscall.ECONNREFUSED), "nobody listens, over IPv6: %v", err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.Nil(err, "listen")
	_, err = net.Listen("tcp", l.Addr().String())
	check.That(errors.Is(err, syscall.EADDRINUSE) && strings.Contains(err.Error(), "bind:"), "port in use: %v", err)
	l.Close()
	_, err = net.Listen("tcp", "192.0.2.1:80")
	check.That(errors.Is(err, syscall.EADDRNOTAVAIL), "not our address: %v", err)

	client, server := pair()
	server.SetLinger(0)
	server.Close()
	_, err = client.Read(make([]byte, 1))
	check.That(errors.Is(err, syscall.ECONNRESET), "reset: %v", err)
	_, err = client.Write(make([]byte, 1))
	check.That(errors.Is(err, syscall.EPIPE), "write after a reset: %v", err)
	client.Close()
}

func tcpDeadlines() {
	client, server := pair()
	defer server.Close()
	client.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	_, err := client.Read(make([]byte, 1))
	check.That(errors.Is(err, os.ErrDeadlineExceeded), "read deadline: %v", err)
	client.SetReadDeadline(time.Time{})
	server.Write([]byte("x"))
	n, err := client.Read(make([]byte, 1))
	check.That(n == 1 && err == nil, "read after a deadline: %d, %v", n, err)

	client.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
	buf := make([]byte, 1<<20)
	for err = nil; err == nil; {
		_, err = client.Write(buf)
	}
	check.That(errors.Is(err, os.ErrDeadlineExceeded), "write deadline: %v", err)
	client.Close()

	l, err := net.Listen("tcp", ":0")
	check.Nil(err, "listen")
	l.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Millisecond))
	_, err = l.Accept()
	check.That(errors.Is(err, os.ErrDeadlineExceeded), "accept deadline: %v", err)
	l.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:1")
	check.That(err != nil, "dial of nobody succeeded")
}

func tcpOptions() {
	client, server := pair()
	defer client.Close()
	defer server.Close()
	check.Nil(client.SetNoDelay(false), "no delay")
	check.Nil(client.SetKeepAlive(true), "keep-alive")
	check.Nil(client.SetKeepAlivePeriod(30*time.Second), "keep-alive period")
	check.Nil(client.SetReadBuffer(100_000), "read buffer")
	check.Nil(client.SetWriteBuffer(100_000), "write buffer")
	raw, err := client.SyscallConn()
	check.Nil(err, "raw")
	check.Nil(raw.Control(func(fd uintptr) {
		for _, o := range []struct{ level, name, want int }{
			{syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 0},
			{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
			{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 30},
			{syscall.SOL_SOCKET, syscall.SO_TYPE, syscall.SOCK_STREAM},
			{syscall.SOL_SOCKET, syscall.SO_RCVBUF, 200_000},
			{syscall.IPPROTO_IP, syscall.IP_TTL, 64},
		} {
			got, err := syscall.GetsockoptInt(int(fd), o.level, o.name)
			check.That(got == o.want && err == nil, "option %d/%d is %d, %v", o.level, o.name, got, err)
		}
		_, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, 12345)
		check.Equal(err, error(syscall.ENOPROTOOPT), "unknown option")
	}), "control")

	f, err := client.File()
	check.Nil(err, "file")
	again, err := net.FileConn(f)
	check.Nil(err, "file conn")
	f.Close()
	server.Write([]byte("dup"))
	b := make([]byte, 3)
	_, err = io.ReadFull(again, b)
	check.That(string(b) == "dup" && err == nil, "a duplicate reads %q, %v", b, err)
	again.Close()
}

// closeWakes: Close ends a blocked Read and a blocked Accept.
func closeWakes() {
	client, server := pair()
	defer server.Close()
	done := make(chan error)
	go func() {
		_, err := client.Read(make([]byte, 1))
		done <- err
	}()
	time.Sleep(10 * time.Millisecond)
	client.Close()
	check.That(errors.Is(<-done, net.ErrClosed), "read that was closed")
	l, err := net.Listen("tcp", ":0")
	check.Nil(err, "listen")
	go func() {
		_, err := l.Accept()
		done <- err
	}()
	time.Sleep(10 * time.Millisecond)
	l.Close()
	check.That(errors.Is(<-done, net.ErrClosed), "accept that was closed")
}

func udp() {
	a, err := net.ListenPacket("udp", "127.0.0.1:0")
	check.Nil(err, "listen")
	b, err := net.Dial("udp", a.LocalAddr().String())
	check.Nil(err, "dial")
	for _, message := range []string{"one", "", "three", strings.Repeat("x", 60_000)} {
		_, err = b.Write([]byte(message))
		check.Nil(err, "write")
		buf := make([]byte, 65536)
		n, from, err := a.ReadFrom(buf)
		check.That(err == nil && string(buf[:n]) == message && from.String() == b.LocalAddr().String(), "datagram of %d: %d %v %v", len(message), n, from, err)
		_, err = a.WriteTo(buf[:n], from)
		check.Nil(err, "write back")
		n, err = b.Read(buf)
		check.That(err == nil && string(buf[:n]) == message, "answer of %d: %d, %v", len(message), n, err)
	}
	_, err = b.Write(make([]byte, 70_000))
	check.That(errors.Is(err, syscall.EMSGSIZE), "too long: %v", err)
	a.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	_, _, err = a.ReadFrom(make([]byte, 1))
	check.That(errors.Is(err, os.ErrDeadlineExceeded), "deadline: %v", err)
	a.Close()
	b.Write([]byte("nobody"))
	b.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, err = b.Read(make([]byte, 1))
	check.That(errors.Is(err, syscall.ECONNREFUSED), "nobody there: %v", err)
	b.Close()
}

// groups joins a multicast group on the loopback, and looks for it in the kernel's list of members in /proc.
func groups() {
	group := &net.UDPAddr{IP: net.IPv4(224, 0, 0, 254), Port: 12345}
	lo, err := net.InterfaceByIndex(1)
	check.Nil(err, "the loopback")
	member := func() bool {
		addrs, err := lo.MulticastAddrs()
		check.Nil(err, "multicast addresses")
		return slices.ContainsFunc(addrs, func(a net.Addr) bool { return a.String() == group.IP.String() })
	}
	check.That(!member(), "a member before")
	a, err := net.ListenMulticastUDP("udp4", lo, group)
	check.Nil(err, "join")
	b, err := net.ListenMulticastUDP("udp4", lo, group)
	check.Nil(err, "join again")
	check.Nil(a.Close(), "leave")
	check.That(member(), "no member although one socket is")
	check.Nil(b.Close(), "leave again")
	check.That(!member(), "a member after all have left")
}

func unixStream() {
	for _, name := range []string{filepath.Join(os.TempDir(), "loam-guest-test.sock"), "@loam-guest-test"} {
		l, err := net.Listen("unix", name)
		check.Nil(err, "listen")
		_, err = net.Listen("unix", name)
		check.That(errors.Is(err, syscall.EADDRINUSE), "name in use: %v", err)
		go func() {
			c, err := l.Accept()
			check.Nil(err, "accept")
			io.Copy(c, c)
			c.Close()
		}()
		c, err := net.Dial("unix", name)
		check.Nil(err, "dial")
		check.Equal(c.RemoteAddr().String(), name, "address")
		go func() {
			c.Write(make([]byte, 1<<20))
			c.(*net.UnixConn).CloseWrite()
		}()
		n, err := io.Copy(io.Discard, c)
		check.That(n == 1<<20 && err == nil, "came back: %d, %v", n, err)
		c.Close()
		l.Close()
		_, err = net.Dial("unix", name)
		check.That(err != nil, "%s still answers", name)
	}
	_, err := os.Stat(filepath.Join(os.TempDir(), "loam-guest-test.sock"))
	check.That(errors.Is(err, os.ErrNotExist), "the socket's file: %v", err)
}

func unixDatagram() {
	a, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@loam-a", Net: "unixgram"})
	check.Nil(err, "listen")
	b, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@loam-b", Net: "unixgram"})
	check.Nil(err, "listen")
	_, err = b.WriteTo([]byte("hello"), a.LocalAddr())
	check.Nil(err, "write")
	buf := make([]byte, 10)
	n, from, err := a.ReadFrom(buf)
	check.That(err == nil && string(buf[:n]) == "hello" && from.String() == "@loam-b", "%q from %v, %v", buf[:n], from, err)
	a.Close()
	_, err = b.WriteTo([]byte("hello"), &net.UnixAddr{Name: "@loam-a", Net: "unixgram"})
	check.That(errors.Is(err, syscall.ECONNREFUSED), "nobody there: %v", err)
	b.Close()
}

// passFile sends a file of the host and a socket of Loam over a Unix socket.
func passFile() {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	check.Nil(err, "socketpair")
	client, server := pair()
	defer server.Close()
	f, err := client.File()
	check.Nil(err, "file")
	null, err := os.Open(os.DevNull)
	check.Nil(err, "open")
	rights := syscall.UnixRights(int(null.Fd()), int(f.Fd()))
	check.Nil(syscall.Sendmsg(fds[0], []byte("x"), rights, nil, 0), "sendmsg")
	f.Close()
	client.Close()

	oob := make([]byte, 100)
	n, oobn, _, _, err := syscall.Recvmsg(fds[1], make([]byte, 10), oob, 0)
	check.That(n == 1 && err == nil, "recvmsg: %d, %v", n, err)
	messages, err := syscall.ParseSocketControlMessage(oob[:oobn])
	check.Nil(err, "control")
	got, err := syscall.ParseUnixRights(&messages[0])
	check.Nil(err, "rights")
	check.Equal(len(got), 2, "descriptors")
	n, err = syscall.Read(got[0], make([]byte, 1))
	check.That(n == 0 && err == nil, "/dev/null: %d, %v", n, err)
	_, err = syscall.Write(got[1], []byte("passed"))
	check.Nil(err, "write")
	b := make([]byte, 6)
	io.ReadFull(server, b)
	check.Equal(string(b), "passed", "through the socket that was passed")
	for _, fd := range append(got, fds[:]...) {
		check.Nil(syscall.Close(fd), "close")
	}
	null.Close()
}

func interfaces() {
	list, err := net.Interfaces()
	check.Nil(err, "interfaces")
	check.That(len(list) >= 1 && list[0].Name == "lo" && list[0].Flags&net.FlagLoopback != 0, "interfaces: %v", list)
	addrs, err := list[0].Addrs()
	check.That(err == nil && len(addrs) == 2 && addrs[0].String() == "127.0.0.1/8" && addrs[1].String() == "::1/128", "addresses: %v, %v", addrs, err)
	i, err := net.InterfaceByName("lo")
	check.That(err == nil && i.Index == 1, "lo: %v, %v", i, err)
}

func files() {
	b, err := os.ReadFile("/etc/hosts")
	check.That(err == nil && strings.HasPrefix(string(b), "127.0.0.1 localhost\n::1 localhost "), "hosts: %q, %v", b, err)
	st, err := os.Stat("/etc/resolv.conf")
	check.That(err == nil && st.Mode().IsRegular(), "resolv.conf: %v, %v", st, err)
	addrs, err := net.LookupHost("localhost")
	check.That(err == nil && len(addrs) == 2 && slices.Contains(addrs, "127.0.0.1") && slices.Contains(addrs, "::1"), "localhost: %v, %v", addrs, err)
}
