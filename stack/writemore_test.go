package stack_test

import (
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loam/stack"
	"loam/wire"
)

// Data written with MSG_MORE is sent together with the following data, or after 200 ms
// (send(2)).
func TestWriteMore(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		c.SetNoDelay(true)
		if n, err := c.TryWriteMore([]byte("head ")); n != 5 || err != nil {
			t.Fatalf("wrote %d bytes, %v", n, err)
		}
		w.wantNone("more follows")
		mustWrite(t, c, "and body")
		p.want("both leave as one", "A", "head and body")
		p.send(wire.ACK, "")
		c.TryWriteMore([]byte("head"))
		w.wantNone("more is to follow again")
		w.advance(200 * time.Millisecond)
		p.want("it is not awaited for ever", "A", "head")
		c.Abort()
	})
}

// Data written with TCP_CORK is sent when it fills a segment, when the option is cleared, or after 200 ms.
func TestCorkedWrites(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		c.SetNoDelay(true)
		cork := func(on bool) { c.SetOptions(func(o *stack.TCPOptions) { o.Cork = on }) }
		cork(true)
		for _, part := range []string{"head ", "and ", "body"} {
			mustWrite(t, c, part)
		}
		w.wantNone("the data is held back")
		cork(false)
		p.want("one segment when the option is cleared", "A", "head and body")
		p.send(wire.ACK, "")
		mustWrite(t, c, "not corked")
		p.want("later data is not held back", "A", "not corked")
		p.send(wire.ACK, "")

		cork(true)
		mustWrite(t, c, "a")
		mustWrite(t, c, "b")
		w.wantNone("the data is held back again")
		w.advance(200 * time.Millisecond)
		p.want("it is not held back for ever", "A", "ab")
		p.send(wire.ACK, "")

		part := strings.Repeat("x", 500)
		mustWrite(t, c, part)
		mustWrite(t, c, part)
		w.wantNone("two parts fill no segment")
		mustWrite(t, c, part)
		p.want("three parts fill a segment", "A", strings.Repeat("x", 1460))
		w.wantNone("the rest fills no segment")
		c.Abort()
	})
}

// On Linux, data that a send releases has reached a receiver on the same host when the call returns. A receiver that only
// polls, without ever blocking, needs that on one CPU: it would keep the shard's loop from running. So no goroutine but the
// program's own may be needed.
func TestReleasedDataArrivesAtOnce(t *testing.T) {
	hold := func(on bool) func(*testing.T, *stack.TCPConn) {
		return func(t *testing.T, c *stack.TCPConn) {
			if err := c.SetOptions(func(o *stack.TCPOptions) { o.Cork = on }); err != nil {
				t.Fatal(err)
			}
		}
	}
	more := func(t *testing.T, c *stack.TCPConn) {
		if n, err := c.TryWriteMore([]byte("head ")); n != 5 || err != nil {
			t.Fatalf("wrote %d bytes, %v", n, err)
		}
	}
	plain := func(text string) func(*testing.T, *stack.TCPConn) {
		return func(t *testing.T, c *stack.TCPConn) {
			if n, err := c.TryWrite([]byte(text)); n != len(text) || err != nil {
				t.Fatalf("wrote %d bytes, %v", n, err)
			}
		}
	}
	end := func(t *testing.T, c *stack.TCPConn) {
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		steps []func(*testing.T, *stack.TCPConn)
		want  string
	}{
		"a send without MSG_MORE": {[]func(*testing.T, *stack.TCPConn){more, plain("body")}, "head body"},
		"TCP_CORK is cleared":     {[]func(*testing.T, *stack.TCPConn){hold(true), plain("head "), plain("body"), hold(false)}, "head body"},
		"the end of the stream":   {[]func(*testing.T, *stack.TCPConn){more, end}, "head "},
	} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the shard's loop runs only if this goroutine blocks
			synctest.Test(t, func(t *testing.T) { releaseOnHost(t, test.steps, test.want) })
		})
	}
}

// releaseOnHost opens a connection of a host with itself, sends and receives 20 small messages, more than are acknowledged
// at once at the start of a connection, and then runs the steps of a sender. The receiver must have what is wanted.
func releaseOnHost(t *testing.T, steps []func(*testing.T, *stack.TCPConn), want string) {
	s := stack.New(stack.Config{})
	defer s.Close()
	l := mustListen(t, s, 80, 1)
	defer l.Close()
	c, err := s.DialTCP(netip.AddrPort{}, mustAddrPort("127.0.0.1:80"), stack.TCPOptions{Delay: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Abort()
	synctest.Wait()
	d, err := l.TryAccept()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Abort()
	b := make([]byte, 100)
	for i := range 20 {
		if n, err := c.TryWrite([]byte("message")); n != 7 || err != nil {
			t.Fatalf("wrote %d bytes, %v", n, err)
		}
		if n, err := d.TryRead(b); n != 7 || err != nil {
			t.Fatalf("message %d: read %d bytes, %v", i, n, err)
		}
	}
	for _, step := range steps {
		step(t, c)
	}
	if n, err := d.TryRead(b); string(b[:n]) != want || err != nil {
		t.Errorf("read %q, %v, want %q", b[:n], err, want)
	}
}
