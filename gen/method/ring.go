//go:build linux

package method

import (
	"fmt"
	"net"
	"time"

	"loam/link"
	"loam/link/afpacket"
	"loam/wire"
)

// ringMemory is the memory for the method ring: a transmit ring (PACKET_TX_RING).
//
// A virtio-net header precedes each frame. Its header length affects the speed: the kernel copies this number of bytes
// of the frame to the linear part of its buffer, and refers to the ring for the rest. A receiver needs the frame's
// headers in the linear part; if they are not there, they are copied later. A short frame that is copied as a whole
// needs no reference to the ring. Over veth, this makes 64-byte frames a quarter faster.
type ringMemory struct {
	*afpacket.TxRing
	size    int
	longest int // length of the longest frame that the interface accepts
	same    int // number of slots, up to the last one filled, that already contain the frame of repeat
	offload link.Offload
}

// checksumRing is the sender of the method ring if checksums are left to the device.
type checksumRing struct {
	memorySender
	ring *ringMemory
}

// LeaveChecksum implements ChecksumLeaver.
func (s *checksumRing) LeaveChecksum(start, offset int) { s.ring.offload = leave(start, offset) }

// leave returns the offload metadata for a checksum that is left to the device. start 0 means that the checksum is
// complete.
func leave(start, offset int) link.Offload {
	return link.Offload{NeedsChecksum: start > 0, CsumStart: uint16(start), CsumOffset: uint16(offset)}
}

// ringSlots is the number of frames in the ring.
const ringSlots = 1024

// maxCopied is the maximum number of bytes of a frame that the kernel copies.
const maxCopied = 256

// openRing opens the method ring for sending. With Config.LeaveChecksum the sender is a ChecksumLeaver.
func openRing(c Config) (Sender, error) {
	c = c.WithDefaults()
	i, err := net.InterfaceByName(c.Interface)
	if err != nil {
		return nil, fmt.Errorf("there is no interface %q: ip link lists those that there are", c.Interface)
	}
	r, err := afpacket.OpenTx(afpacket.TxConfig{
		Interface: c.Interface, Slots: max(ringSlots, 2*c.Batch), Size: c.Size, Offloads: true, Bypass: !c.Qdisc,
		Opaque: !c.Qdisc && !c.LeaveChecksum,
	})
	if err != nil {
		return nil, err
	}
	m := &ringMemory{TxRing: r, size: c.Size, longest: i.MTU + wire.EthernetLen + wire.VLANTagLen}
	if c.LeaveChecksum {
		return &checksumRing{memorySender{m: m}, m}, nil
	}
	return &memorySender{m: m}, nil
}

func (m *ringMemory) slot() []byte {
	slot := m.Slot()
	if slot == nil {
		return nil
	}
	return slot[link.VirtioHeaderLen:][:m.size]
}

// fits checks the length of a frame, because the kernel does not check it if there is a virtio-net header. With some
// drivers, a frame that is too long is dropped and the ring stalls; other drivers may even send it.
func (m *ringMemory) fits(n int) bool { return n <= m.longest }

func (m *ringMemory) put(n int) {
	m.same = 0
	m.write(n)
}

// write queues a frame of n bytes in the current slot, after its virtio-net header.
func (m *ringMemory) write(n int) {
	m.offload.HeaderLen = uint16(min(n, maxCopied))
	m.offload.Put(m.Slot())
	m.Put(link.VirtioHeaderLen + n)
}

// repeat writes the frame into each slot once. Afterwards it uses the content of the slots again.
func (m *ringMemory) repeat(frame []byte, n int) (sent int) {
	for ; sent < n; sent++ {
		if m.same == m.Slots() {
			return sent + m.PutAgain(n-sent)
		}
		slot := m.slot()
		if slot == nil {
			break
		}
		m.write(copy(slot, frame))
		m.same++
	}
	return sent
}

func (m *ringMemory) kick() error {
	if errno := kick(m.Descriptor()); errno != 0 {
		return errno
	}
	return nil
}

func (m *ringMemory) pause() error   { return m.Wait(time.Millisecond) }
func (m *ringMemory) handed() uint64 { return m.Handed() }
func (m *ringMemory) gone() uint64   { return m.Left() }
func (m *ringMemory) close() error   { return m.Close() }
