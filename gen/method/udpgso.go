//go:build linux

package method

import (
	"time"

	"golang.org/x/sys/unix"
)

// gsoSender is the method udpgso. Datagrams of the same length are stored one after another in a buffer. The kernel
// processes them as one packet, a train. The interface segments it, or the kernel does so just before the interface
// (udp(7), UDP_SEGMENT). All datagrams have the segment length that is set on the socket, except that the last may be
// shorter.
//
// An interface without hardware, especially a veth, may forward the packet unsegmented. Then the interface and its peer
// count one packet for many datagrams.
type gsoSender struct {
	counters
	fd        int
	size      int // length of the longest datagram
	buffer    []byte
	used      int // number of bytes used in buffer
	held      int // number of datagrams in buffer
	segment   int // length of each datagram in buffer, except that the last may be shorter
	setLength int // segment length set on the socket
}

// Limits of the kernel: UDP_MAX_SEGMENTS, and the maximum length of a packet without its headers, in bytes.
const (
	maxSegments = 64
	maxTrain    = 65535 - 40 - 8
)

// openGSO opens the method udpgso.
func openGSO(c Config) (Sender, error) {
	c = c.WithDefaults()
	s, err := connected(c, unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetsockoptInt(s, unix.SOL_UDP, unix.UDP_SEGMENT, c.Size); err != nil {
		unix.Close(s)
		return nil, explain(c, "UDP_SEGMENT", err)
	}
	return &gsoSender{fd: s, size: c.Size, setLength: c.Size, buffer: make([]byte, maxTrain+c.Size)}, nil
}

// Layer implements Sender.
func (s *gsoSender) Layer() Layer { return Payload }

// Send implements Sender.
func (s *gsoSender) Send(n int, fill func(slot []byte) int) (sent int, err error) {
	for asked := 0; asked < n; asked++ {
		length := fill(s.buffer[s.used:][:s.size])
		if length == 0 {
			break
		}
		gone, err := s.add(length)
		sent += gone
		if err != nil {
			return sent, err
		}
	}
	gone, err := s.push()
	return sent + gone, err
}

// add adds the datagram that fill has written at the end of the used part of the buffer. If the datagram cannot join
// the earlier ones, these are sent first. When no further datagram can join, all are sent. sent is the number of
// datagrams that were sent.
func (s *gsoSender) add(length int) (sent int, err error) {
	if s.held > 0 && (length > s.segment || s.used+length > maxTrain) {
		at := s.used
		sent, err = s.push()
		copy(s.buffer, s.buffer[at:at+length])
	}
	if s.held == 0 {
		s.segment = length
	}
	s.used += length
	s.held++
	if err == nil && (length < s.segment || s.held == maxSegments) {
		gone, e := s.push()
		return sent + gone, e
	}
	return sent, err
}

// push sends the datagrams in the buffer. If the kernel refuses them, it refuses all.
func (s *gsoSender) push() (sent int, err error) {
	if s.held == 0 {
		return 0, nil
	}
	if s.segment != s.setLength {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_UDP, unix.UDP_SEGMENT, s.segment); err != nil {
			return 0, err
		}
		s.setLength = s.segment
	}
	var p patience
	kicks := 0
	for gone := false; !gone && err == nil; kicks++ {
		if errno := send(s.fd, s.buffer[:s.used]); errno != 0 {
			err = p.wait(s.fd, &s.counters, errno)
		} else {
			gone = true
		}
	}
	held, used := s.held, s.used
	s.held, s.used = 0, 0
	switch err {
	case nil:
		s.took(held, used, kicks)
		return held, nil
	case errRefused:
		s.refused.Add(uint64(held - 1)) // wait has already counted one of them
		err = nil
	}
	s.took(0, 0, kicks)
	return 0, err
}

// Flush implements Sender.
func (s *gsoSender) Flush(timeout time.Duration) error { return flush(s.fd, &s.counters, timeout) }

// Close implements Sender.
func (s *gsoSender) Close() error { return unix.Close(s.fd) }
