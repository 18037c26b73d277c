//go:build linux

package interop

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"syscall"
	"testing"

	"loam/stack"
	"loam/wire"
)

// udpSizes returns sizes of datagrams: empty, short, exactly one full packet and one byte more, the
// same for two packets, and the longest possible.
func udpSizes(mtu int) []int {
	const headers = wire.IPv4MinLen + wire.UDPLen
	full := (mtu - wire.IPv4MinLen) &^ 7 // payload of a fragment
	return []int{0, 1, 2, 3, 512, mtu - headers, mtu - headers + 1, 2*full - wire.UDPLen, 2*full - wire.UDPLen + 1, 30000, stack.MaxUDP}
}

// TestUDPSizes checks that datagrams of all sizes arrive complete, in both directions.
func TestUDPSizes(t *testing.T) {
	each(t, func(l *lab, v variant) {
		for _, d := range l.directions() {
			client, server := l.udpPair(d)
			for _, size := range udpSizes(v.setup.linkMTU()) {
				if err := there(client, server, size); err != nil {
					l.Errorf("%s, %d bytes: %v", d, size, err)
				}
			}
		}
	})
}

// TestUDPStranger checks that the first datagram to a host is not lost, whatever its length.
func TestUDPStranger(t *testing.T) {
	for i := range 2 {
		each(t, func(l *lab, v variant) {
			d := l.directions()[i]
			client, server := l.udpPair(d)
			if err := there(client, server, stack.MaxUDP); err != nil {
				l.Errorf("%s: %v", d, err)
			}
		})
	}
}

// TestUDPTooLong checks that data too long for a datagram is rejected with the same error as on Linux.
func TestUDPTooLong(t *testing.T) {
	l := newLab(t, setup{})
	for _, d := range l.directions() {
		client, _ := l.udpPair(d)
		if _, err := client.Write(make([]byte, stack.MaxUDP+1)); !errors.Is(err, syscall.EMSGSIZE) {
			t.Errorf("%s: got %v", d, err)
		}
	}
}

// TestUDPMany checks that many datagrams of random sizes all arrive, and in order over one queue. At
// most as many are in transit as fit into the receiver's buffer.
func TestUDPMany(t *testing.T) {
	each(t, func(l *lab, v variant) {
		for _, d := range l.directions() {
			client, server := l.udpPair(d)
			if err := udpBulk(client, server, scale(20000, 2000), v.setup.queues); err != nil {
				l.Errorf("%s: %v", d, err)
			}
		}
	})
}

// udpPair returns a connected socket and the socket that it is connected to.
func (l *lab) udpPair(d direction) (client net.Conn, server net.PacketConn) {
	l.Helper()
	server, err := d.server.listenPacket("udp4", d.server.at(0))
	l.must(err)
	l.Cleanup(func() { server.Close() })
	l.must(server.SetDeadline(l.until()))
	client, err = d.client.dial(l.ctx, "udp4", server.LocalAddr().String())
	l.must(err)
	l.Cleanup(func() { client.Close() })
	l.must(client.SetDeadline(l.until()))
	return client, server
}

// there sends a datagram and sends it back.
func there(client net.Conn, server net.PacketConn, size int) error {
	data := block[size : 2*size]
	if _, err := client.Write(data); err != nil {
		return err
	}
	got := make([]byte, stack.MaxUDP+1)
	n, from, err := server.ReadFrom(got)
	if err != nil {
		return fmt.Errorf("there: %w", err)
	}
	if !bytes.Equal(got[:n], data) {
		return fmt.Errorf("got %d bytes there, not the %d that were sent", n, size)
	}
	if _, err := server.WriteTo(got[:n], from); err != nil {
		return err
	}
	clear(got)
	if n, err = client.Read(got); err != nil {
		return fmt.Errorf("back: %w", err)
	}
	if !bytes.Equal(got[:n], data) {
		return fmt.Errorf("got %d bytes back, not the %d that were sent", n, size)
	}
	return nil
}

// udpBulk sends count datagrams, with at most a window of them in transit.
func udpBulk(client net.Conn, server net.PacketConn, count, queues int) error {
	const window = 32 // datagrams in transit, in buffers of at most 8 kB each; Linux's receive buffer holds 212,992 bytes
	r := rand.New(rand.NewPCG(1, 2))
	got := make([]byte, stack.MaxUDP+1)
	for done := 0; done < count; done += window {
		var sizes [window]int
		for i := range sizes {
			sizes[i] = 100*i + r.IntN(100) // all sizes are different
			if _, err := client.Write(block[i : i+sizes[i]]); err != nil {
				return err
			}
		}
		for i := range sizes {
			n, _, err := server.ReadFrom(got)
			if err != nil {
				return fmt.Errorf("datagram %d: %w", done+i, err)
			}
			// Find the datagram that has arrived by its content. With several queues, fragments and complete packets
			// may overtake each other, as with any network card.
			k := i
			if queues > 1 {
				k = slices.Index(sizes[:], n)
			}
			if k < 0 || n != sizes[k] || !bytes.Equal(got[:n], block[k:k+n]) {
				return fmt.Errorf("datagram %d: got %d bytes, not what was sent", done+i, n)
			}
			sizes[k] = -1
		}
	}
	return nil
}
