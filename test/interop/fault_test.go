//go:build linux

package interop

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"loam/link"
	"loam/link/fault"
	"loam/stack"
)

// The tests of ping_test.go, udp_test.go, transfer_test.go and many_test.go over a link with faults. In
// each direction, it loses, duplicates and reorders one frame in a hundred. Without offloads, a frame
// is a segment; with offloads, it may be 64 kB.

// faulty returns a wrapper that adds faults between Loam and the tap. The same seed gives the same
// faults.
func faulty(seed uint64) func(link.Device) link.Device {
	way := fault.Direction{Loss: 0.01, Duplicate: 0.01, Reorder: 0.01}
	return func(d link.Device) link.Device {
		return fault.New(d, fault.Config{Seed: seed, Send: way, Recv: way})
	}
}

// faultVariants are links with faults, and the amount of data sent over each in MiB.
var faultVariants = []variant{
	{"offloads", setup{wrap: faulty(1)}, faultySize()},
	{"no offloads", setup{wrap: faulty(2), noOffloads: true}, 128},
	{"two queues", setup{wrap: faulty(3), queues: 2}, 128},
	{"small MTU", setup{wrap: faulty(4), mtu: 576}, 64},
}

// faultySize returns a gibibyte if LOAM_INTEROP_FULL is set, because over a link with loss that takes
// most of a minute.
func faultySize() int {
	if os.Getenv("LOAM_INTEROP_FULL") != "" {
		return 1024
	}
	return 128
}

// eachFault runs a test in a lab of its own for each link with faults, and checks that faults occurred.
func eachFault(t *testing.T, variants []variant, test func(l *lab, v variant)) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			l := newLab(t, v.setup)
			test(l, v)
			send, recv := l.ifc.Device().(*fault.Device).Counts()
			for _, c := range []fault.Counts{send, recv} {
				if c.Lost+c.Duplicated+c.Reordered == 0 {
					t.Errorf("of %d frames %d were lost, %d doubled and %d overtaken", c.Frames, c.Lost, c.Duplicated, c.Reordered)
				}
			}
		})
	}
}

// TestFaultyTransfer checks that a stream arrives unchanged over a link with faults, in each direction and in both at
// once.
func TestFaultyTransfer(t *testing.T) {
	eachFault(t, faultVariants, func(l *lab, v variant) {
		size := scale(v.size, quickSize) << 20
		for _, d := range l.directions() {
			client, server := l.connect(d)
			l.send(d.String(), client, server, size)
			client, server = l.connect(d)
			l.exchange(d.String()+", both send", client, server, size/8)
		}
	})
}

// TestFaultyMany checks that the streams of a thousand connections at once arrive unchanged over a link with faults.
func TestFaultyMany(t *testing.T) {
	eachFault(t, faultVariants[:2], func(l *lab, v variant) {
		l.meet()
		for _, d := range l.directions() {
			l.many(d, scale(1000, 100), 16<<10)
		}
	})
}

// TestFaultyPing checks that each of a thousand senders finally gets its replies, with the data that it
// sent.
func TestFaultyPing(t *testing.T) {
	eachFault(t, faultVariants, func(l *lab, v variant) {
		l.meet()
		for _, newPinger := range []func() *pinger{l.loamPinger, l.linuxPinger} {
			l.pingAll("under faults", scale(1000, 100), func() *pinger {
				p := newPinger()
				p.patience = 200 * time.Millisecond
				return p
			})
		}
	})
}

// TestFaultyUDP checks that every datagram that arrives is complete, whatever its number of fragments,
// and that every datagram repeated until it arrives does arrive.
func TestFaultyUDP(t *testing.T) {
	eachFault(t, faultVariants, func(l *lab, v variant) {
		for _, d := range l.directions() {
			client, server := l.udpPair(d)
			for i := range scale(10, 2) {
				for _, size := range udpSizes(v.setup.linkMTU()) {
					if err := insist(client, server, size, i); err != nil {
						l.Errorf("%s, %d bytes: %v", d, size, err)
					}
				}
			}
		}
	})
}

// insist sends a datagram until it arrives.
func insist(client net.Conn, server net.PacketConn, size, salt int) error {
	data := block[salt : salt+size]
	got := make([]byte, stack.MaxUDP+1)
	for {
		if _, err := client.Write(data); err != nil {
			return err
		}
		server.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
		for {
			n, _, err := server.ReadFrom(got)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break // the datagram is lost: send it again
			}
			if err != nil {
				return err
			}
			if bytes.Equal(got[:n], data) {
				return nil
			}
			if !isOld(got[:n]) {
				return fmt.Errorf("%d bytes that nobody sent", n)
			}
		}
	}
}

// isOld reports whether b is the content of an earlier datagram, which arrives late or twice.
func isOld(b []byte) bool { return len(b) == 0 || bytes.Contains(block[:len(b)+100], b) }
