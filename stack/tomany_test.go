package stack_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
)

// toMany describes a broadcast or multicast datagram, the groups joined, and how often it
// is received.
type toMany struct {
	to, join    string
	options     stack.UDPOptions // options of the sending socket
	self, other int              // number of copies that a socket receives: on the sender's host, and on the other host
}

// Broadcast and multicast datagrams are also delivered on the sender's own host: once, to
// sockets that receive them on that interface, unless the sender disables it (ip(7), RFC
// 3493 section 5.2). The datagrams are fragmented on the way.
func TestToMany(t *testing.T) {
	for name, c := range map[string]toMany{
		"a group that is heard here": {"239.1.1.1:53", "239.1.1.1", stack.UDPOptions{}, 1, 1},
		"one that is not":            {"239.1.1.2:53", "239.1.1.1", stack.UDPOptions{}, 0, 0},
		"without the loop":           {"239.1.1.1:53", "239.1.1.1", stack.UDPOptions{NoLoop: true}, 0, 1},
		"without that of IPv6":       {"239.1.1.1:53", "239.1.1.1", stack.UDPOptions{NoLoop6: true}, 1, 1},
		"all hosts":                  {"255.255.255.255:53", "", stack.UDPOptions{Broadcast: true, NoLoop: true}, 1, 1},
		"those of the network":       {"10.0.0.255:53", "", stack.UDPOptions{Broadcast: true}, 1, 1},
		"a group of IPv6":            {"[ff05::1:3]:53", "ff05::1:3", stack.UDPOptions{}, 1, 1},
		"IPv6, without the loop":     {"[ff05::1:3]:53", "ff05::1:3", stack.UDPOptions{NoLoop6: true}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.check(t) })
		})
	}
}

func (c *toMany) check(t *testing.T) {
	p := newPair(t, stack.Config{}, pipe.Config{})
	time.Sleep(5 * time.Second) // waits until duplicate detection has finished
	to := netip.MustParseAddrPort(c.to)
	host := "0.0.0.0"
	if to.Addr().Is6() {
		host = "[::]"
	}
	here, there := mustListenUDP(t, p.a, host+":53", stack.UDPOptions{}), mustListenUDP(t, p.b, host+":53", stack.UDPOptions{})
	if c.join != "" {
		must(t, here.JoinGroup(netip.MustParseAddr(c.join), nil))
		must(t, there.JoinGroup(netip.MustParseAddr(c.join), nil))
	}
	data := randomBytes(3000)
	if _, err := mustListenUDP(t, p.a, host+":1000", c.options).TryWriteTo(data, to); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	for _, end := range []struct {
		who  string
		conn *stack.UDPConn
		want int
	}{{"the sender's host", here, c.self}, {"the other", there, c.other}} {
		if got, _ := end.conn.Waiting(); got != end.want {
			t.Errorf("%s hears it %d times, not %d", end.who, got, end.want)
		}
	}
	if c.self == 0 {
		return
	}
	b := make([]byte, len(data)+1)
	n, info, err := here.TryReadFrom(b)
	if err != nil || string(b[:n]) != string(data) || info.From.Port() != 1000 || info.To != to {
		t.Errorf("what is heard is %d bytes from %v to %v, %v", n, info.From, info.To, err)
	}
}
