//go:build linux

package afpacket

import (
	"testing"

	"golang.org/x/sys/unix"

	"loam/internal/netns"
)

// The kernel gives number 0 to the first group after boot, which is a valid number. The second
// member joins that group instead of starting its own. Otherwise all frames would arrive twice.
func TestFanoutGroupZero(t *testing.T) {
	netns.Need(t)
	sockets := [2]int{}
	for i := range sockets {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if err := bind(fd, 1, allProtocols); err != nil {
			t.Fatal(err)
		}
		sockets[i] = fd
	}
	const mode = unix.PACKET_FANOUT_HASH | unix.PACKET_FANOUT_FLAG_IGNORE_OUTGOING
	if err := unix.SetsockoptInt(sockets[0], unix.SOL_PACKET, unix.PACKET_FANOUT, 0|mode<<16); err != nil {
		t.Fatal(err)
	}
	group := fanout{begun: true, id: 0}
	if err := group.join(sockets[1]); err != nil {
		t.Fatal(err)
	}
	v, err := unix.GetsockoptInt(sockets[1], unix.SOL_PACKET, unix.PACKET_FANOUT)
	if err != nil || v&0xffff != 0 {
		t.Errorf("the second is in group %d, %v", v&0xffff, err)
	}
}
