//go:build linux

package netns

import (
	"fmt"
	"net"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

var pairs atomic.Int32

// Veth creates a veth pair with the given number of queues. Both ends are up and ready. The pair is
// removed at the end of the test.
func Veth(t testing.TB, mtu, queues int) (a, b string) {
	t.Helper()
	Need(t)
	n := pairs.Add(1)
	a, b = fmt.Sprintf("va%d", n), fmt.Sprintf("vb%d", n)
	size := []string{"mtu", strconv.Itoa(mtu), "numtxqueues", strconv.Itoa(queues), "numrxqueues", strconv.Itoa(queues)}
	args := append([]string{"link", "add", a}, size...)
	args = append(args, "type", "veth", "peer", "name", b)
	IP(t, append(args, size...)...)
	t.Cleanup(func() { IP(t, "link", "del", a) })
	for _, name := range []string{a, b} {
		IP(t, "link", "set", name, "up")
	}
	for _, name := range []string{a, b} {
		awaitCarrier(t, name)
	}
	return a, b
}

// awaitCarrier waits until an interface that is up has a carrier. The kernel sets the carrier in the
// background, and drops frames before that.
func awaitCarrier(t testing.TB, name string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		if i, err := net.InterfaceByName(name); err == nil && i.Flags&net.FlagRunning != 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come up", name)
		}
	}
}
