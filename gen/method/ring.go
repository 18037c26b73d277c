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

// ringMemory is the memory of the method ring: PACKET_TX_RING.
//
// Each frame has a virtio-net header in front, for its header length: the kernel
// copies that much of a frame to where it looks for headers, and has its buffer
// point into the ring for the rest. Whoever receives needs the headers together,
// so a frame without them costs him a copy later, and a short frame that is
// copied whole costs no pointer: measured over veth, 64-byte frames go a quarter
// faster.
type ringMemory struct {
	*afpacket.TxRing
	size    int
	longest int // frame that the interface takes
	same    int // slots, up to the last one put, that hold the frame of repeat
	offload link.Offload
}

// checksumRing is the method ring with LeaveChecksum.
type checksumRing struct {
	memorySender
	ring *ringMemory
}

// LeaveChecksum implements ChecksumLeaver.
func (s *checksumRing) LeaveChecksum(start, offset int) { s.ring.offload = leave(start, offset) }

func leave(start, offset int) link.Offload {
	return link.Offload{NeedsChecksum: start > 0, CsumStart: uint16(start), CsumOffset: uint16(offset)}
}

// ringSlots is how many frames the ring holds.
const ringSlots = 1024

// maxCopied is how much of a frame the kernel copies, in bytes.
const maxCopied = 256

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

// fits: of frames with a virtio-net header the kernel does not look at the length. A driver
// that lets one fall has the ring stand still, and others may send it.
func (m *ringMemory) fits(n int) bool { return n <= m.longest }

func (m *ringMemory) put(n int) {
	m.same = 0
	m.write(n)
}

// write puts n bytes of the slot, with a header in front.
func (m *ringMemory) write(n int) {
	m.offload.HeaderLen = uint16(min(n, maxCopied))
	m.offload.Put(m.Slot())
	m.Put(link.VirtioHeaderLen + n)
}

// repeat writes the frame to each slot once. From then on it is there.
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
