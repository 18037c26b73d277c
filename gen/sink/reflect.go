package sink

import (
	"encoding/binary"
	"time"

	"loam/gen/method"
	"loam/wire"
)

// Reflect returns a receiver that also sends each tagged UDP frame back to its sender, so that the sender can measure
// round-trip times. Other frames are received as by r. Closing the receiver also closes tx.
//
// In a frame that is sent back, the TTL or hop limit is decremented, so that two reflectors do not exchange a frame
// forever.
func Reflect(r method.Receiver, tx method.Sender) method.Receiver {
	return &reflector{Receiver: r, tx: tx}
}

// reflector implements Reflect.
type reflector struct {
	method.Receiver
	tx   method.Sender
	back [][]byte // frames to send back; the first n are in use
	n    int
	next int
}

// reflectBatch is the maximum number of frames that are sent back in one call of the sender.
const reflectBatch = 64

// Receive implements method.Receiver.
func (r *reflector) Receive(timeout time.Duration, got func([]byte, int64)) (int, error) {
	if r.back == nil {
		r.back = make([][]byte, reflectBatch)
	}
	var failed error
	n, err := r.Receiver.Receive(timeout, func(frame []byte, at int64) {
		got(frame, at)
		if _, tagged := find(frame); !tagged {
			return
		}
		if b := append(r.back[r.n][:0], frame...); turn(b) {
			r.back[r.n] = b
			r.n++
		}
		if r.n == reflectBatch && failed == nil {
			failed = r.send()
		}
	})
	if r.n > 0 && failed == nil {
		failed = r.send()
	}
	if err == nil {
		err = failed
	}
	return n, err
}

// send sends the stored frames back.
func (r *reflector) send() error {
	r.next = 0
	_, err := r.tx.Send(r.n, r.fill)
	r.n = 0
	return err
}

func (r *reflector) fill(slot []byte) int {
	n := copy(slot, r.back[r.next])
	r.next++
	return n
}

// Passed implements method.Passer.
func (r *reflector) Passed() uint64 {
	if p, ok := r.Receiver.(method.Passer); ok {
		return p.Passed()
	}
	return 0
}

// Close implements method.Receiver. It also closes the sender.
func (r *reflector) Close() error {
	err := r.Receiver.Close()
	if e := r.tx.Close(); err == nil {
		err = e
	}
	return err
}

// turn changes a UDP frame so that it goes back to its sender. It exchanges the addresses and the ports, which does not
// change any checksum, and decrements the TTL or hop limit. ok is false for other frames, and for frames whose TTL or
// hop limit is used up.
func turn(b []byte) (ok bool) {
	const at, ports = wire.EthernetLen, 2
	if len(b) < at+wire.IPv4MinLen+wire.UDPLen {
		return false
	}
	p := b[at:]
	switch wire.EtherType(binary.BigEndian.Uint16(b[12:])) {
	case wire.TypeIPv4:
		if p[0] != 0x45 || wire.Protocol(p[9]) != wire.ProtoUDP || p[8] <= 1 {
			return false
		}
		swap(p[12:16], p[16:20])
		swap(p[wire.IPv4MinLen:][:ports], p[wire.IPv4MinLen+ports:][:ports])
		p[8]--
		// RFC 1624: subtracting 1 from the upper byte of a word adds 1 to the upper byte of the checksum.
		sum := uint32(binary.BigEndian.Uint16(p[10:])) + 0x100
		binary.BigEndian.PutUint16(p[10:], uint16(sum+sum>>16))
	case wire.TypeIPv6:
		if len(p) < wire.IPv6Len+wire.UDPLen || wire.Protocol(p[6]) != wire.ProtoUDP || p[7] <= 1 {
			return false
		}
		swap(p[8:24], p[24:40])
		swap(p[wire.IPv6Len:][:ports], p[wire.IPv6Len+ports:][:ports])
		p[7]--
	default:
		return false
	}
	swap(b[:6], b[6:12])
	return true
}

func swap(a, b []byte) {
	for i := range a {
		a[i], b[i] = b[i], a[i]
	}
}
