package usernet

import (
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"

	"loam/internal/netns"
)

// ownNamespace moves the test to a new network namespace whose loopback device has the
// given address, for the life of its goroutine. It needs root.
func ownNamespace(t *testing.T, address string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("making a network namespace needs root")
	}
	runtime.LockOSThread() // never unlocked: the thread, and with it the namespace, ends with the test
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		t.Skip("no network namespaces here: ", err)
	}
	netns.Up(t, "lo", 0)
	netns.Address(t, "lo", netip.MustParsePrefix(address))
}

// A ping of the guest is sent by a ping socket of the host.
func TestPingThroughTheGateway(t *testing.T) {
	ownNamespace(t, "192.0.2.1/32")
	if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0); err != nil {
		t.Skip(err)
	}
	n := newNetwork(t, Config{})
	if n.pinger.socket == nil || n.pinger.socket.raw {
		t.Fatal("the host allows ping sockets, and the gateway has none")
	}
	for _, size := range []int{0, 56, 1472, 4000} {
		reply, err := n.guest.Ping(ctx(t), netip.MustParseAddr("192.0.2.1"), size)
		if err != nil || reply.From.String() != "192.0.2.1" || reply.Len != size {
			t.Fatalf("a ping of %d bytes: %+v, %v", size, reply, err)
		}
	}
	n.wantCounter(PingIn, 4)

	p, err := n.guest.ListenPing(netip.Addr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Send(netip.MustParseAddr("192.0.2.2"), 1, nil) // the namespace has no route to this address
	n.wantCounter(PingFailed, 1)
}
