//go:build linux

package interop

import (
	"fmt"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"loam/stack"
)

// urgent is the interface of a program to urgent data, at either end.
type urgent interface {
	sendUrgent(b []byte) (int, error)   // send(2) with MSG_OOB
	recvUrgent(keep bool) (byte, error) // recv(2) with MSG_OOB; also with MSG_PEEK if keep is true
	atMark() bool                       // sockatmark(3)
	stayInline(l *lab)                  // SO_OOBINLINE
	Read(b []byte) (int, error)         //
	Write(b []byte) (int, error)        //
}

type loamUrgent struct{ *stack.TCPConn }

func (c loamUrgent) sendUrgent(b []byte) (int, error)   { return c.TryWriteUrgent(b) }
func (c loamUrgent) recvUrgent(keep bool) (byte, error) { return c.TryReadUrgent(keep) }
func (c loamUrgent) atMark() bool                       { return c.AtMark() }
func (c loamUrgent) stayInline(l *lab) {
	l.must(c.SetOptions(func(o *stack.TCPOptions) { o.UrgentInline = true }))
}

type linuxUrgent struct{ *net.TCPConn }

// do runs f with the descriptor.
func (c linuxUrgent) do(f func(fd int) error) (err error) {
	raw, e := c.SyscallConn()
	if e == nil {
		e = raw.Control(func(fd uintptr) { err = f(int(fd)) })
	}
	if e != nil {
		return e
	}
	return err
}

func (c linuxUrgent) sendUrgent(b []byte) (n int, err error) {
	err = c.do(func(fd int) error {
		n, err = syscall.SendmsgN(fd, b, nil, nil, syscall.MSG_OOB)
		return err
	})
	return n, err
}

func (c linuxUrgent) recvUrgent(keep bool) (byte, error) {
	flags := syscall.MSG_OOB
	if keep {
		flags |= syscall.MSG_PEEK
	}
	var b [1]byte
	err := c.do(func(fd int) error {
		_, _, err := syscall.Recvfrom(fd, b[:], flags)
		return err
	})
	return b[0], err
}

func (c linuxUrgent) atMark() bool {
	const sioAtMark = 0x8905
	at := 0
	c.do(func(fd int) (err error) {
		at, err = unix.IoctlGetInt(fd, sioAtMark)
		return err
	})
	return at != 0
}

func (c linuxUrgent) stayInline(l *lab) {
	l.must(c.do(func(fd int) error { return syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_OOBINLINE, 1) }))
}

func urgentEnd(c conn) urgent {
	if c, ok := c.(*stack.TCPConn); ok {
		return loamUrgent{c}
	}
	return linuxUrgent{c.(*net.TCPConn)}
}

// TestUrgent checks that urgent data means the same at both ends, in both directions.
func TestUrgent(t *testing.T) {
	l := newLab(t, setup{})
	for _, d := range l.directions() {
		for _, inline := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,inline=%v", d, inline), func(t *testing.T) {
				client, server := l.connect(d)
				from, to := urgentEnd(client), urgentEnd(server)
				if inline {
					to.stayInline(l)
				}
				if _, err := to.recvUrgent(false); err == nil {
					t.Error("there is an urgent byte before there is any")
				}
				from.Write([]byte("abc"))
				if n, err := from.sendUrgent([]byte("def")); n != 3 || err != nil {
					t.Fatalf("%d bytes sent, %v", n, err)
				}
				from.Write([]byte("ghi"))
				wantStream(t, to, "abcde")
				if !inline {
					wantUrgent(l, to, 'f')
				}
				rest := map[bool]string{false: "ghi", true: "fghi"}[inline]
				got := make([]byte, len(rest))
				for n := 0; n < len(got); {
					m, err := to.Read(got[n:])
					if n += m; err != nil {
						t.Fatalf("after %q: %v", got[:n], err)
					}
				}
				if string(got) != rest {
					t.Errorf("behind the mark comes %q, want %q", got, rest)
				}
				if _, err := to.recvUrgent(false); err == nil {
					t.Error("there is an urgent byte after the mark was passed")
				}
			})
		}
	}
}

// wantStream reads to the mark and compares.
func wantStream(t *testing.T, to urgent, want string) {
	t.Helper()
	var got []byte
	for !to.atMark() {
		b := make([]byte, 100)
		n, err := to.Read(b)
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		if got = append(got, b[:n]...); len(got) > len(want) {
			break
		}
	}
	if string(got) != want {
		t.Errorf("in front of the mark there is %q, want %q", got, want)
	}
}

// wantUrgent receives the urgent byte and checks that it can be received only once.
func wantUrgent(l *lab, to urgent, want byte) {
	l.Helper()
	l.eventually("the urgent byte", func() bool {
		_, err := to.recvUrgent(true)
		return err == nil
	})
	if b, err := to.recvUrgent(false); b != want || err != nil {
		l.Errorf("the urgent byte is %q, %v; want %q", b, err, want)
	}
	if _, err := to.recvUrgent(false); err == nil {
		l.Error("the urgent byte is received twice")
	}
}
