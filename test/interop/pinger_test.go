//go:build linux

package interop

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/sync/errgroup"

	"loam/stack"
	"loam/wire"
)

// pinger sends echo requests to one peer.
type pinger struct {
	send        func(seq uint16, data []byte) error
	receive     func(b []byte) (n int, seq uint16, err error)
	setDeadline func(time.Time)
	until       time.Time
	// patience is how long to wait for a reply before the request is repeated. It is 0 on links where
	// nothing is lost, duplicated or late.
	patience time.Duration
	seq      uint16
	salt     int // makes the data differ between pingers
	got      []byte
}

// ping sends a request with size bytes of data and waits for the reply.
func (p *pinger) ping(size int) error {
	at := (p.salt + int(p.seq)*7919) % (len(block) - size)
	data := block[at : at+size]
	for {
		p.seq++
		err := p.send(p.seq, data)
		if err != nil && (p.patience == 0 || !errors.Is(err, stack.ErrWouldBlock)) {
			return err
		} // ENOBUFS: the device still has earlier requests to send, so this request counts as lost
		n, err := p.await()
		switch {
		case p.patience != 0 && errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(p.until):
			continue
		case err != nil:
			return err
		case !bytes.Equal(p.got[:n], data):
			return fmt.Errorf("got %d bytes, not the %d that were sent", n, size)
		}
		return nil
	}
}

// await receives the reply to the last request. With patience, it skips replies to earlier requests.
func (p *pinger) await() (int, error) {
	p.setDeadline(p.until)
	if p.patience != 0 {
		p.setDeadline(time.Now().Add(p.patience))
	}
	for {
		n, seq, err := p.receive(p.got)
		if err != nil || seq == p.seq {
			return n, err
		}
		if p.patience == 0 {
			return n, fmt.Errorf("got a reply to request %d, want %d", seq, p.seq)
		}
	}
}

// loamPinger returns a pinger from Loam to Linux.
func (l *lab) loamPinger() *pinger {
	l.Helper()
	s, err := l.stack.ListenPing(netip.Addr{}, 0)
	l.must(err)
	l.Cleanup(func() { s.Close() })
	return &pinger{
		salt: int(s.ID()),
		send: func(seq uint16, data []byte) error { return s.Send(l.linux.addr, seq, data) },
		receive: func(b []byte) (int, uint16, error) {
			n, info, err := s.Receive(b)
			return n, info.From.Port(), err
		},
		setDeadline: func(t time.Time) { s.SetDeadline(t) },
		until:       l.until(),
		got:         make([]byte, stack.MaxPing+1),
	}
}

// linuxPinger returns a pinger from Linux to Loam that uses a ping socket (icmp(7)): the kernel fills
// in the identifier and the checksum, and verifies the replies.
func (l *lab) linuxPinger() *pinger {
	l.Helper()
	l.must(os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 0"), 0))
	s, err := icmp.ListenPacket("udp4", l.linux.addr.String())
	l.must(err)
	l.Cleanup(func() { s.Close() })
	to := &net.UDPAddr{IP: l.loam.addr.AsSlice()}
	packet := make([]byte, wire.ICMPv4Len+stack.MaxPing+1)
	return &pinger{
		salt: s.LocalAddr().(*net.UDPAddr).Port,
		send: func(seq uint16, data []byte) error {
			h := wire.ICMPv4{Type: wire.ICMPv4Echo, Rest: wire.EchoRest(0, seq)}
			h.Put(packet)
			_, err := s.WriteTo(packet[:wire.ICMPv4Len+copy(packet[wire.ICMPv4Len:], data)], to)
			return err
		},
		receive: func(b []byte) (int, uint16, error) {
			n, _, err := s.ReadFrom(packet)
			if err != nil {
				return 0, 0, err
			}
			h, data, err := wire.ParseICMPv4(packet[:n])
			if err != nil || h.Type != wire.ICMPv4EchoReply {
				return 0, 0, fmt.Errorf("%+v, %v", h, err)
			}
			return copy(b, data), h.EchoSeq(), nil
		},
		setDeadline: func(t time.Time) { s.SetReadDeadline(t) },
		until:       l.until(),
		got:         make([]byte, stack.MaxPing+1),
	}
}

// pingAll runs many pingers at once. Each pinger sends its next request when it has received the reply to the
// previous one.
func (l *lab) pingAll(who string, senders int, newPinger func() *pinger) {
	l.Helper()
	requests := max(4, scale(4000, 400)/senders)
	pingers := make([]*pinger, senders)
	for i := range pingers {
		pingers[i] = newPinger()
	}
	var g errgroup.Group
	began := time.Now()
	for i, p := range pingers {
		g.Go(func() error {
			for n := range requests {
				if err := p.ping((17*i + 56*n) % 3000); err != nil {
					return fmt.Errorf("%s, sender %d, request %d: %w", who, i, n, err)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		l.Fatal(err)
	}
	l.Logf("%s: %d requests in %v", who, senders*requests, time.Since(began).Round(time.Millisecond))
}
