package stack_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// Every request of a program either works or returns an error that says what to do.

func TestGroupsCannotBeSetLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, stack.Config{}, pipe.Config{})
		c := mustListenUDP(t, p.a, "0.0.0.0:53", stack.UDPOptions{})
		groups := p.a.NewMemberships()
		defer groups.Close()
		err := c.SetOptions(func(o *stack.UDPOptions) { o.Groups, o.TTL = groups, 9 })
		if !errors.Is(err, stack.ErrInvalid) || !strings.Contains(err.Error(), "JoinGroup") {
			t.Errorf("setting Groups: %v, want ErrInvalid that names JoinGroup", err)
		}
		if o := c.Options(); o.Groups != nil || o.TTL != 0 {
			t.Errorf("the options are %+v after the error", o)
		}
		must(t, c.SetOptions(func(o *stack.UDPOptions) { o.TTL = 9 }))
	})
}

// A socket that can join a group receives datagrams to it; any other socket gets an
// error.
func TestJoinGroupWorksOrFails(t *testing.T) {
	group, source := netip.MustParseAddr("239.1.1.1"), addrB
	for local, works := range map[string]bool{
		"0.0.0.0:53": true, "239.1.1.1:53": true, "[::]:53": true,
		"10.0.0.1:53": false, "239.1.1.2:53": false, "127.0.0.1:53": false,
	} {
		t.Run(local, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, stack.Config{}, pipe.Config{})
				c := mustListenUDP(t, p.a, local, stack.UDPOptions{})
				err := c.JoinGroup(group, nil)
				if !works {
					if bySource := c.JoinSourceSpecificGroup(group, source, nil); !errors.Is(err, stack.ErrInvalid) || !errors.Is(bySource, stack.ErrInvalid) {
						t.Errorf("joined: %v, by source: %v; want ErrInvalid", err, bySource)
					}
					return
				}
				must(t, err)
				from := mustListenUDP(t, p.b, "10.0.0.2:1000", stack.UDPOptions{})
				_, err = from.TryWriteTo([]byte("x"), netip.AddrPortFrom(group, 53))
				must(t, err)
				time.Sleep(time.Second)
				if n, _ := c.Waiting(); n != 1 {
					t.Errorf("%d datagrams were received, want 1", n)
				}
			})
		})
	}
}

func TestRouteWithoutDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, stack.Config{}, pipe.Config{})
		err := p.a.AddRoute(stack.Route{Gateway: addrB})
		if !errors.Is(err, stack.ErrInvalid) || !strings.Contains(err.Error(), "Dst") {
			t.Errorf("%v, want ErrInvalid that names Dst", err)
		}
	})
}

// ReadFrame waits for a frame, the deadline, or Close.
func TestLinkConnWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, stack.Config{}, pipe.Config{})
		c, err := p.a.ListenLink(true, wire.TypeARP)
		must(t, err)
		b := make([]byte, 100)
		time.Sleep(5 * time.Second) // waits until the stack has sent its address announcements
		for err == nil {
			_, _, err = c.TryRead(b)
		}
		began := time.Now()
		must(t, c.SetReadDeadline(began.Add(time.Second)))
		if _, _, err := c.ReadFrame(b); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v, want the deadline after a second", time.Since(began), err)
		}
		must(t, c.SetReadDeadline(time.Time{}))
		time.AfterFunc(time.Second, func() { p.b.DialTCP(unspecified, netip.AddrPortFrom(addrA, 80), stack.TCPOptions{}) })
		n, info, err := c.ReadFrame(b)
		if err != nil || n != wire.ARPLen || info.Type != wire.TypeARP || info.Type.String() != "ARP" {
			t.Errorf("read %d bytes of type %v, %v; want an ARP request", n, info.Type, err)
		}
		time.AfterFunc(time.Second, func() { c.Close() })
		for err == nil {
			_, _, err = c.ReadFrame(b)
		}
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v, want net.ErrClosed", err)
		}
	})
}

// Unsent counts data never sent; Unacknowledged also counts data in flight.
func TestUnsentAndUnacknowledged(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		want := func(when string, unsent, unacknowledged int) {
			t.Helper()
			if u, a := c.Unsent(), c.Unacknowledged(); u != unsent || a != unacknowledged {
				t.Errorf("%s: %d unsent, %d unacknowledged; want %d and %d", when, u, a, unsent, unacknowledged)
			}
		}
		want("at first", 0, 0)
		p.window = 2920
		p.send(wire.ACK, "")
		mustWrite(t, c, strings.Repeat("x", 5000))
		want("with a window of 2920 bytes", 2080, 5000)
		w.forget()
		p.expect += 2920
		p.window = 1460
		p.send(wire.ACK, "")
		want("after an acknowledgment", 620, 2080)
		c.Abort()
		want("at the end", 0, 0)
	})
}
