package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"loam/test/bench/subject"
	"loam/wire"
)

// echo is the first experiment of the GoNet paper (section 3.3.1): the kernel sends n ICMP echo requests at once, and
// the stack replies. The client's half always runs on the kernel. The paper starts n ping programs, which send 50
// requests each. Here one socket sends n requests back to back, 50 times. The kernel stamps the replies on arrival, as
// it does for ping.
//
// Samples: "1" to "1000", by number of requests at once: the mean time to the reply in microseconds;
// "lost", the requests without a reply, in percent.
type echo struct{}

// EchoCounts are the numbers of requests at once.
var EchoCounts = []int{1, 2, 5, 10, 20, 50, 100, 200, 400, 600, 800, 1000}

// rounds is how often each number is measured, if time allows.
const rounds = 50

func (echo) Serve(subject.Host) error { return nil }

func (echo) Run(_ subject.Host, peer netip.Addr, span time.Duration) (Samples, error) {
	p, err := newPinger(peer)
	if err != nil {
		return nil, err
	}
	defer unix.Close(p.fd)
	if _, err := p.round(1); err != nil { // the first round resolves the neighbour
		return nil, err
	}
	samples := Samples{}
	sent, answered := 0, 0
	for _, n := range EchoCounts {
		var sum time.Duration
		var count int
		deadline := time.Now().Add(2 * span / time.Duration(len(EchoCounts)))
		for r := 0; r < rounds && (r < 5 || time.Now().Before(deadline)); r++ {
			trips, err := p.round(n)
			if err != nil {
				return nil, err
			}
			for _, t := range trips {
				sum += t
			}
			count += len(trips)
			sent += n
		}
		if count == 0 {
			return nil, fmt.Errorf("no reply to %d pings at once", n)
		}
		answered += count
		samples[fmt.Sprint(n)] = microseconds(sum) / float64(count)
	}
	samples["lost"] = 100 * float64(sent-answered) / float64(sent)
	return samples, nil
}

// pinger sends echo requests from a raw socket of the kernel.
type pinger struct {
	fd  int
	to  unix.SockaddrInet4
	id  uint16
	seq uint16
}

// replyTimeout is how long a round waits for the next reply.
const replyTimeout = 200 * time.Millisecond

func newPinger(peer netip.Addr) (*pinger, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err != nil {
		return nil, fmt.Errorf("raw socket: %w", err)
	}
	timeout := unix.NsecToTimeval(int64(replyTimeout))
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		buffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF),
		buffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
	)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("set up the raw socket: %w", err)
	}
	return &pinger{fd: fd, to: unix.SockaddrInet4{Addr: peer.As4()}, id: uint16(os.Getpid())}, nil
}

// buffer gives the socket room for the largest burst. Without privilege, it gives as much as the system
// allows.
func buffer(fd, force, polite int) error {
	const room = 8 << 20
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, room) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, polite, room)
}

// requestLen is the length in bytes of a request: an ICMP header and the 56 bytes of data that ping
// sends.
const requestLen = wire.ICMPv4Len + 56

// round sends n requests, then reads the replies, and returns the round-trip times. The kernel queues
// the replies meanwhile, each with its time of arrival. Each request contains its time of sending, as
// with ping. Sequence numbers are not reused by later rounds for a long time.
func (p *pinger) round(n int) ([]time.Duration, error) {
	first := p.seq
	p.seq += uint16(n)
	for i := range n {
		if err := p.request(first + uint16(i)); err != nil {
			return nil, err
		}
	}
	trips := make([]time.Duration, 0, n)
	for len(trips) < n {
		seq, trip, err := p.reply()
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil {
			return nil, err
		}
		if seq-first < uint16(n) {
			trips = append(trips, trip)
		}
	}
	return trips, nil
}

func (p *pinger) request(seq uint16) error {
	var b [requestLen]byte
	wire.ICMPv4{Type: wire.ICMPv4Echo, Rest: wire.EchoRest(p.id, seq)}.Put(b[:])
	binary.BigEndian.PutUint64(b[wire.ICMPv4Len:], uint64(time.Now().UnixNano()))
	wire.PutICMPv4Checksum(b[:])
	if err := unix.Sendto(p.fd, b[:], 0, &p.to); err != nil {
		return fmt.Errorf("send an echo request: %w", err)
	}
	return nil
}

// reply returns the next reply to this pinger, or EAGAIN after replyTimeout.
func (p *pinger) reply() (seq uint16, trip time.Duration, err error) {
	var b [128]byte
	var control [64]byte
	for {
		n, controlLen, _, _, err := unix.Recvmsg(p.fd, b[:], control[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		h, data, ok := p.answer(b[:n])
		if !ok {
			continue
		}
		came, err := arrival(control[:controlLen])
		if err != nil {
			return 0, 0, err
		}
		sent := int64(binary.BigEndian.Uint64(data))
		return h.EchoSeq(), time.Duration(came - sent), nil
	}
}

// answer parses an IP packet. ok reports whether it is a reply to this pinger.
func (p *pinger) answer(packet []byte) (h wire.ICMPv4, data []byte, ok bool) {
	_, msg, err := wire.ParseIPv4(packet)
	if err != nil || len(msg) != requestLen {
		return h, nil, false
	}
	h, data, err = wire.ParseICMPv4(msg)
	return h, data, err == nil && h.Type == wire.ICMPv4EchoReply && h.EchoID() == p.id
}

// arrival returns the kernel's time stamp (SO_TIMESTAMPNS) in ns since 1970.
func arrival(control []byte) (int64, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, err
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			sec := int64(binary.NativeEndian.Uint64(m.Data))
			nsec := int64(binary.NativeEndian.Uint64(m.Data[8:]))
			return sec*int64(time.Second) + nsec, nil
		}
	}
	return 0, errors.New("a reply without a time stamp")
}
