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

// pingSizes are sizes of the data of an echo request: none, too little for a time
// stamp, one packet that is just full and one byte more, the same for two, and
// the most that there is.
func pingSizes(mtu int) []int {
	const headers = wire.IPv4MinLen + wire.ICMPv4Len
	full := (mtu - wire.IPv4MinLen) &^ 7 // what a fragment carries
	return []int{0, 1, 7, 8, 56, mtu - headers, mtu - headers + 1, 2*full - wire.ICMPv4Len, 2*full - wire.ICMPv4Len + 1, stack.MaxPing}
}

// TestPingFromLinux: Loam answers ping(8), which checks what comes back, at every
// size; the very first request too, for which Linux has to be found by ARP.
func TestPingFromLinux(t *testing.T) {
	eachSize(t, pingSizes, func(l *lab, size int) {
		for range 2 { // one each: for the second answer ping waits twice as long as for the first, and no longer
			out := l.run("ping", "-n", "-c", "1", "-W", "60", "-p", "5a", "-s", strconv.Itoa(size), l.loam.addr.String())
			if !strings.Contains(out, " 1 received, 0% packet loss") || strings.Contains(out, "wrong") || strings.Contains(out, "DUP") {
				l.Errorf("%d bytes:\n%s", size, out)
			}
		}
	})
}

// TestPingFlood: not one of thousands of requests that come as fast as they can
// is lost.
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

// TestPingFromLoam: Linux answers Loam's requests of every size with the data
// that was sent.
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

// TestPingTooLong: there is no such packet.
func TestPingTooLong(t *testing.T) {
	l := newLab(t, setup{})
	if _, err := l.stack.Ping(l.ctx, l.linux.addr, stack.MaxPing+1); !errors.Is(err, stack.ErrMessageTooLong) {
		t.Errorf("got %v", err)
	}
}

// TestPingConcurrent: of up to a thousand senders at once, each has its own
// replies, all of them.
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
