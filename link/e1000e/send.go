package e1000e

import (
	"encoding/binary"
	"sync"

	"loam/driver"
	"loam/link"
	"loam/wire"
)

// sender is the transmit ring. One goroutine at a time calls Send. The lock is needed for Close and look.
//
// Each descriptor has a slot of memory, which never changes. Send copies a frame into the slots of the next descriptors,
// so the frame is free again when Send returns. The card marks the last descriptor of a frame as done. The next Send
// finds that without an interrupt. A Send that cannot take all frames unmasks the interrupt.
type sender struct {
	room *link.Bell

	mu    sync.Mutex // guards all fields below
	queue *queue
	ring  driver.Buffer
	slots driver.Buffer
	size  int      // number of descriptors
	head  int      // index of the oldest descriptor that the card may still use
	tail  int      // index of the next descriptor to fill
	shown int      // the tail that was last written to the register
	last  []uint16 // for the first descriptor of each frame: index of the frame's last descriptor

	context uint64 // first word of the last context descriptor, for checksums; 0: none, or it was for segmentation
	wants   bool   // a Send has not taken all frames, and room was not signalled since

	lookedHead int // head at the last call of look
	ticks      int // number of calls of look without progress
}

const (
	sendSlot = 4096 // length of a slot in bytes
	minPiece = 2048 // least length of a piece of a frame to be cut, if it is not the last piece
	minFrame = 60   // shorter frames are padded (IEEE 802.3, without the frame check sequence)
)

// setUp allocates the memory.
func (s *sender) setUp(q *queue, size int) (err error) {
	s.queue, s.size, s.room, s.last = q, size, link.NewBell(), make([]uint16, size)
	if s.ring, err = q.device.machine.Allocate(size*sendDescriptors, pageSize); err != nil {
		return err
	}
	s.slots, err = q.device.machine.Allocate(size*sendSlot, pageSize)
	return err
}

// place writes the address of the empty ring into the registers.
func (s *sender) place() {
	place(s.queue.device.registers, regSendRing, s.ring)
	s.queue.device.registers.Write32(regSendHead, 0)
	s.queue.device.registers.Write32(regSendTail, 0)
}

// Room implements link.Queue.
func (q *queue) Room() <-chan struct{} { return q.sender.room.C() }

// Send implements link.Queue.
func (q *queue) Send(fs []*link.Frame) (int, error) {
	s, d := &q.sender, q.device
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := d.state(); err != nil {
		return 0, err
	}
	s.reclaim()
	n, err := link.Transmit(&d.info, &q.counters, (*port)(s), fs)
	if s.shown != s.tail {
		s.shown = s.tail
		d.registers.Write32(regSendTail, uint32(s.tail))
	}
	if n < len(fs) && err == nil {
		s.wantRoom()
	}
	return n, err
}

// wantRoom requests a signal of Room when there is room again.
func (s *sender) wantRoom() {
	d, before := s.queue.device, s.head
	s.wants = true
	d.unmask(d.causes.send)
	if s.reclaim(); s.head != before { // the interrupt for these frames may have been before the writes
		s.wants = false
		s.room.Ring()
	}
}

// loop waits for interrupts of the transmit vector. It runs on a goroutine of its own if the card has MSI-X.
func (s *sender) loop() {
	d := s.queue.device
	for {
		select {
		case <-d.interrupts[vectorSend].C():
			s.interrupted()
		case <-d.done:
			return
		}
	}
}

// interrupted signals room if a Send waits for it. The interrupt has masked its cause.
func (s *sender) interrupted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wants {
		s.wants = false
		s.room.Ring()
	}
}

// stallTicks is the number of calls of look without progress after which the card is notified again.
const stallTicks = 5

// look looks for a lost interrupt, and for a card that does not send. watch calls it periodically.
func (s *sender) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.head
	s.reclaim()
	if s.wants && s.head != before {
		s.wants = false
		s.room.Ring()
	}
	if s.head == s.tail || s.head != s.lookedHead {
		s.lookedHead, s.ticks = s.head, 0
		return
	}
	if s.ticks++; s.ticks >= stallTicks {
		s.ticks = 0
		s.queue.device.stalls.Add(1)
		s.queue.device.registers.Write32(regSendTail, uint32(s.tail))
	}
}

// reclaim takes back the descriptors of frames that the card has sent.
func (s *sender) reclaim() {
	for s.head != s.tail {
		last := int(s.last[s.head])
		if word(s.ring.Bytes, last*sendDescriptors+8).Load()&sentDone == 0 {
			return
		}
		s.head = (last + 1) % s.size
	}
}

// spare returns the number of free descriptors. One descriptor always stays free, so that a full ring differs from an
// empty one.
func (s *sender) spare() int { return (s.head - s.tail - 1 + s.size) % s.size }

// port is a sender as a link.Sender. link.Transmit has already checked the frames.
type port sender

// Send copies frames into the ring.
func (p *port) Send(fs []*link.Frame) (n int, err error) {
	s := (*sender)(p)
	for n < len(fs) && s.add(fs[n]) {
		n++
	}
	return n, nil
}

// add copies f into the ring and frees it. It returns false if there is no room.
func (s *sender) add(f *link.Frame) bool {
	if !s.prepare(f) {
		f.Free()
		s.queue.counters.TxDropped(1)
		return true
	}
	piece := sendSlot
	if f.GSO != link.GSONone {
		// The card reserves space in its buffer for a whole number of segments of each piece: not more than 4.
		piece = min(piece, max(minPiece, 4*int(f.GSOSize)))
	}
	pieces := (f.Len() + piece - 1) / piece
	if s.spare() < pieces+1 {
		return false
	}
	first := s.tail
	options := s.putContext(f)
	at := s.tail
	for b := f.Bytes(); len(b) > 0; b = b[min(piece, len(b)):] {
		s.putPiece(b[:min(piece, len(b))], options, len(b) <= piece, f.Len() < minFrame)
	}
	if f.GSO != link.GSONone {
		s.clearLengths(f, at)
	}
	s.last[first] = uint16((s.tail + s.size - 1) % s.size)
	f.Free()
	return true
}

// Offsets of the checksum field in TCP and UDP headers, and limits of context descriptors.
const (
	sumTCP    = 16
	sumUDP    = 6
	maxOffset = 255 // largest offset of a checksum field, and of the payload
)

// prepare does the part of the offloads of f that the card cannot do. It returns false if the frame cannot be sent.
func (s *sender) prepare(f *link.Frame) bool {
	if f.GSO != link.GSONone && !f.Admit(link.Ethernet) {
		return false
	}
	if f.GSO != link.GSONone {
		return f.HeaderLen <= maxOffset
	}
	// QEMU's e1000e counts padding as payload, so checksums of padded frames are computed here.
	if f.NeedsChecksum && (f.Len() < minFrame || int(f.CsumStart)+int(f.CsumOffset) > maxOffset || f.CsumOffset != sumTCP && f.CsumOffset != sumUDP) {
		return f.FinishChecksum()
	}
	return true
}

// putContext writes a context descriptor if f needs one that differs from the last one (section 7.2.10.1). It returns the
// options of the frame's data descriptors.
func (s *sender) putContext(f *link.Frame) (options uint64) {
	if !f.NeedsChecksum {
		return 0
	}
	start, field := uint64(f.CsumStart), uint64(f.CsumStart)+uint64(f.CsumOffset)
	first, second := start<<32|field<<40, uint64(sentExtended)
	if f.CsumOffset == sumTCP {
		second |= sentTCP
	}
	if f.GSO == link.GSONone {
		if s.context != first {
			s.context = first
			s.put(first, second)
		}
		return sentSum
	}
	s.context = 0
	options = sentSegment | sentSum
	second |= sentSegment | uint64(f.Len()-int(f.HeaderLen)) | uint64(f.HeaderLen)<<sentHeaderShift | uint64(f.GSOSize)<<sentMSSShift
	ip := uint64(ipOffset(f.Bytes()))
	first |= ip // where the card finds the length, in IPv6 headers too
	if f.GSO == link.GSOTCP4 {
		const sumAt = 10 // offset of the checksum in an IPv4 header
		first |= (ip+sumAt)<<8 | (start-1)<<16
		second |= sentIPv4
		options |= sentSumIP
	}
	s.put(first, second)
	return options
}

// putPiece copies b, at most sendSlot bytes, into the next slot, and writes its data descriptor. last says that b ends the
// frame. pad says that b is a frame that is too short: it is padded with zeros, which do not change a checksum.
func (s *sender) putPiece(b []byte, options uint64, last, pad bool) {
	slot := s.slots.Bytes[s.tail*sendSlot:][:sendSlot]
	n := copy(slot, b)
	if pad {
		clear(slot[n:minFrame])
		n = minFrame
	}
	second := options | uint64(n) | sentData | sentExtended | sentFCS
	if last {
		second |= sentLast | sentReport
	}
	s.put(s.slots.Address+uint64(s.tail*sendSlot), second)
}

// put writes the next descriptor.
func (s *sender) put(first, second uint64) {
	at := s.tail * sendDescriptors
	word(s.ring.Bytes, at).Store(first)
	word(s.ring.Bytes, at+8).Store(second)
	s.tail = (s.tail + 1) % s.size
}

// clearLengths changes the headers in slot i, the first one of the frame f to be cut, as the card expects them
// (section 7.2.10.1.1): the length and the checksum in the IP header are 0, and the sum of the pseudo header in the TCP
// header does not include the length.
func (s *sender) clearLengths(f *link.Frame, i int) {
	b := s.slots.Bytes[i*sendSlot:][:f.HeaderLen]
	ip := b[ipOffset(b):]
	const ipv4Len, ipv4Sum, ipv6Len = 2, 10, 4
	if f.GSO == link.GSOTCP4 {
		binary.BigEndian.PutUint16(ip[ipv4Len:], 0)
		binary.BigEndian.PutUint16(ip[ipv4Sum:], 0)
	} else {
		binary.BigEndian.PutUint16(ip[ipv6Len:], 0)
	}
	sum := b[int(f.CsumStart)+int(f.CsumOffset):]
	length := f.Len() - int(f.CsumStart)
	v := uint32(binary.BigEndian.Uint16(sum)) + uint32(^uint16(length)) // subtracts in ones' complement
	binary.BigEndian.PutUint16(sum, uint16(v+v>>16))
}

// ipOffset returns the offset of the IP header of a frame: it is after the Ethernet header and up to two VLAN tags. The
// headers have been checked.
func ipOffset(b []byte) int {
	at := wire.EthernetLen
	for range 2 {
		if t := wire.EtherType(binary.BigEndian.Uint16(b[at-2:])); t != wire.TypeVLAN && t != wire.TypeQinQ {
			break
		}
		at += wire.VLANTagLen
	}
	return at
}

// free frees the memory. The card must be off.
func (s *sender) free(m driver.Machine) {
	freeBuffer(m, &s.ring)
	freeBuffer(m, &s.slots)
}
