//go:build linux

package interop

import (
	"errors"
	"fmt"

	"strconv"
	"strings"
	"testing"

	"loam/stack"
	"loam/wire"
)

// pingSizes returns sizes of the data of an echo request: empty, too short for a time stamp, exactly
// one full packet and one byte more, the same for two packets, and the longest possible.
func pingSizes(mtu int) []int {
	const headers = wire.IPv4MinLen + wire.ICMPv4Len
	full := (mtu - wire.IPv4MinLen) &^ 7 // payload of a fragment
	return []int{0, 1, 7, 8, 56, mtu - headers, mtu - headers + 1, 2*full - wire.ICMPv4Len, 2*full - wire.ICMPv4Len + 1, stack.MaxPing}
}

// TestPingFromLinux checks that Loam answers ping(8), which verifies the replies, for every size,
// including the first request, for which Linux must be found by ARP.
func TestPingFromLinux(t *testing.T) {
	eachSize(t, pingSizes, func(l *lab, size int) {
		for range 2 { // each run of ping sends one request: for a second reply, ping waits only twice as long as the first took
			out := l.run("ping", "-n", "-c", "1", "-W", "60", "-p", "5a", "-s", strconv.Itoa(size), l.loam.addr.String())
			if !strings.Contains(out, " 1 received, 0% packet loss") || strings.Contains(out, "wrong") || strings.Contains(out, "DUP") {
				l.Errorf("%d bytes:\n%s", size, out)
			}
		}
	})
}

// TestPingFlood checks that none of thousands of requests sent as fast as possible is lost.
func TestPingFlood(t *testing.T) {
	l := newLab(t, setup{queues: 2})
	n := strconv.Itoa(scale(20000, 1000))
	for _, size := range []string{"56", "4000"} {
		out := l.run("ping", "-n", "-q", "-f", "-l", "100", "-c", n, "-s", size, l.loam.addr.String())
		if !strings.Contains(out, " "+n+" received, 0% packet loss") {
			t.Errorf("%s bytes:\n%s", size, out)
		}
	}
}

// TestPingFromLoam checks that Linux answers Loam's requests of every size with the data that was sent.
func TestPingFromLoam(t *testing.T) {
	eachSize(t, pingSizes, func(l *lab, size int) {
		if err := l.loamPinger().ping(size); err != nil {
			l.Errorf("%d bytes: %v", size, err)
		}
		reply, err := l.stack.Ping(l.ctx, l.linux.addr, size)
		if err != nil || reply.Len != size || reply.From != l.linux.addr || reply.TTL != 64 || reply.RTT <= 0 {
			l.Errorf("%d bytes: %+v, %v", size, reply, err)
		}
	})
}

// TestPingTooLong checks that a request longer than an IP packet is rejected.
func TestPingTooLong(t *testing.T) {
	l := newLab(t, setup{})
	if _, err := l.stack.Ping(l.ctx, l.linux.addr, stack.MaxPing+1); !errors.Is(err, stack.ErrMessageTooLong) {
		t.Errorf("got %v", err)
	}
}

// TestPingConcurrent checks that each of up to a thousand concurrent senders gets all of its own
// replies.
func TestPingConcurrent(t *testing.T) {
	for _, v := range []variant{{"one queue", setup{}, 0}, {"two queues", setup{queues: 2}, 0}} {
		for _, senders := range []int{1, 10, 100, 1000} {
			t.Run(fmt.Sprintf("%s, %d senders", v.name, senders), func(t *testing.T) {
				l := newLab(t, v.setup)
				l.meet()
				l.pingAll("loam", senders, l.loamPinger)
				l.pingAll("linux", senders, l.linuxPinger)
			})
		}
	}
}
