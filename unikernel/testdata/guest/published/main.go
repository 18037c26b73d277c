// Command published serves connections from the host. The first line of each names the function of deeds that serves
// it. The program runs on Linux as well, and has to behave alike there.
//
// Its arguments are four ports. It listens on the first. The others are for ports that are closed, or that a function
// opens later.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"example.com/guest/internal/check"
)

// patience is a timeout that is long enough for a busy host. The results do not depend on it.
const patience = 20 * time.Second

// deeds maps the first line of a connection to the function that serves it. Each function owns its connection.
var deeds = map[string]func(*net.TCPConn) error{
	"echo": echo, "addresses": addresses, "linger": linger, "deadline": deadline, "half": half, "broken": broken,
	"options": options, "info": info, "vector": vector, "tree": tree, "file": file, "forward": forward, "pass": pass,
	"blocking": blocking, "level": level, "edge": edge, "poll": poll, "peek": peek, "urgent": urgent, "mark": mark, "queued": queued,
	"table": table, "second": second, "dual": dual, "alone": alone, "deferred": deferred, "reach": reach, "never": never, "leave": leave, "exit": exit, "crash": crash, "twice": twice, "closing": closing,
}

func main() {
	l, err := net.Listen("tcp4", ":"+os.Args[1])
	check.Nil(err, "listen")
	inside, err := net.Listen("tcp", "127.0.0.1:"+os.Args[4])
	check.Nil(err, "listen inside")
	defer inside.Close()
	fmt.Println("ready")
	for {
		c, err := l.Accept()
		check.Nil(err, "accept")
		go serve(c.(*net.TCPConn))
	}
}

func serve(c *net.TCPConn) {
	c.SetDeadline(time.Now().Add(patience))
	line, err := readLine(c)
	deed, ok := deeds[line]
	if !ok {
		fmt.Printf("FAIL asked for %q, %v\n", line, err)
		c.Close()
		return
	}
	if err := deed(c); err != nil {
		fmt.Printf("FAIL %s: %v\n", line, err)
		c.Close()
	}
}

// readLine reads byte by byte, so that it reads nothing behind the line.
func readLine(r io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := io.ReadFull(r, b); err != nil || b[0] == '\n' {
			return string(line), err
		}
		line = append(line, b[0])
	}
}

// echo sends back what it receives, and then closes for writing.
func echo(c *net.TCPConn) error {
	defer c.Close()
	_, err := io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
	return errors.Join(err, c.CloseWrite())
}

// addresses checks that getsockname and getpeername agree with package net, and sends both addresses.
func addresses(c *net.TCPConn) error {
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var local, remote syscall.Sockaddr
	raw.Control(func(fd uintptr) {
		local, _ = syscall.Getsockname(int(fd))
		remote, _ = syscall.Getpeername(int(fd))
	})
	a, b := c.LocalAddr().(*net.TCPAddr), c.RemoteAddr().(*net.TCPAddr)
	if l, r := nameOf(local), nameOf(remote); l != a.String() || r != b.String() {
		return fmt.Errorf("names %v and %v, of package net %v and %v", local, remote, a, b)
	}
	_, err = fmt.Fprintf(c, "%s %d %s", a.IP, a.Port, b.IP)
	return err
}

// dual listens on the third port for both versions of IP, and sends the addresses of a connection there; alone listens
// for IPv6 only.
func dual(c *net.TCPConn) error { return listenThird(c, "tcp") }

func alone(c *net.TCPConn) error { return listenThird(c, "tcp6") }

func listenThird(c *net.TCPConn, network string) error {
	defer c.Close()
	l, err := net.Listen(network, ":"+os.Args[3])
	if err != nil {
		return err
	}
	defer l.Close()
	if _, err := c.Write([]byte("listens\n")); err != nil {
		return err
	}
	came, err := l.Accept()
	if err != nil {
		return err
	}
	came.SetDeadline(time.Now().Add(patience))
	return addresses(came.(*net.TCPConn))
}

// nameOf formats an address of either version. An IPv4-mapped address is formatted as IPv4.
func nameOf(sa syscall.Sockaddr) string {
	switch a := sa.(type) {
	case *syscall.SockaddrInet4:
		return (&net.TCPAddr{IP: a.Addr[:], Port: a.Port}).String()
	case *syscall.SockaddrInet6:
		return (&net.TCPAddr{IP: a.Addr[:], Port: a.Port}).String()
	}
	return "no name"
}

// linger closes with a linger time of 0, which sends a reset.
func linger(c *net.TCPConn) error {
	return errors.Join(c.SetLinger(0), c.Close())
}

// deadline reads until a deadline, and then, with a later deadline, a line.
func deadline(c *net.TCPConn) error {
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("a read that is late: %v", err)
	}
	c.SetReadDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte("late\n")); err != nil {
		return err
	}
	line, err := readLine(c)
	fmt.Fprintf(c, "then %s", line)
	return err
}

// half reads to the end of the stream, and then writes.
func half(c *net.TCPConn) error {
	defer c.Close()
	b, err := io.ReadAll(c)
	fmt.Fprintf(c, "%d bytes", len(b))
	return err
}

// broken checks the errors after the client's reset. It reports on standard output, because the connection is gone.
func broken(c *net.TCPConn) error {
	defer c.Close()
	if _, err := c.Write([]byte("go\n")); err != nil {
		return err
	}
	_, err := c.Read(make([]byte, 1))
	if !errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("read: %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("write: %v", err)
	}
	fmt.Println("broken")
	return nil
}

// control calls f with the connection's descriptor.
func control(c *net.TCPConn, f func(fd int) (int, error)) (n int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	if failed := raw.Control(func(fd uintptr) { n, err = f(int(fd)) }); failed != nil {
		err = failed
	}
	return n, err
}

// vector sends several buffers by one writev(2).
func vector(c *net.TCPConn) error {
	defer c.Close()
	v := net.Buffers{[]byte("one "), nil, []byte("two "), []byte(strings.Repeat("three ", 1000))}
	_, err := v.WriteTo(c)
	return err
}

// tree sends a file of the program, by sendfile(2) where the system has it.
func tree(c *net.TCPConn) error {
	defer c.Close()
	f, err := os.CreateTemp("", "")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	text := strings.Repeat("from a file ", 20000)
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	n, err := io.Copy(c, f)
	if n != int64(len(text)) {
		err = fmt.Errorf("%d bytes: %v", n, err)
	}
	return err
}

// forward connects the client with an echo server inside of the program, by splice(2) where the system has it.
func forward(c *net.TCPConn) error {
	defer c.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		if far, err := l.Accept(); err == nil {
			echo(far.(*net.TCPConn))
		}
	}()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer near.Close()
	go func() {
		io.Copy(near, c)
		near.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(c, near)
	return err
}

// table looks for the connection in /proc/net/tcp.
func table(c *net.TCPConn) error {
	defer c.Close()
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return err
	}
	defer f.Close()
	a, b := c.LocalAddr().(*net.TCPAddr), c.RemoteAddr().(*net.TCPAddr)
	want := fmt.Sprintf("%s:%04X %s:%04X 01 ", hexIP(a.IP), a.Port, hexIP(b.IP), b.Port)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.Contains(lines.Text(), want) {
			_, err := c.Write([]byte("there"))
			return err
		}
	}
	return fmt.Errorf("no line of /proc/net/tcp has %q", want)
}

func hexIP(ip net.IP) string {
	four := ip.To4()
	return fmt.Sprintf("%02X%02X%02X%02X", four[3], four[2], four[1], four[0])
}

// never keeps the connection, and reads nothing, until the program ends.
func never(c *net.TCPConn) error {
	kept = append(kept, c)
	_, err := c.Write([]byte("kept"))
	return err
}

var kept []*net.TCPConn

// leave closes the connection while data is unsent; exit ends the program while data is unsent.
func leave(c *net.TCPConn) error {
	_, err := c.Write(make([]byte, 1<<20))
	return errors.Join(err, c.Close())
}

func exit(c *net.TCPConn) error {
	c.Write(make([]byte, 1<<20))
	os.Exit(3)
	return nil
}

// crash ends the program by SIGKILL.
func crash(c *net.TCPConn) error {
	syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {}
}

// closing checks that closing a connection ends a read of it.
func closing(c *net.TCPConn) error {
	go func() {
		time.Sleep(20 * time.Millisecond)
		c.Close()
	}()
	_, err := c.Read(make([]byte, 1))
	if !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("a read of what is closed: %v", err)
	}
	return nil
}
