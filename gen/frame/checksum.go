package frame

import "loam/wire"

// Checksums. The Internet checksum is linear: the sum of a frame is the sum of its constant part plus the sums of the
// changing fields, each shifted to its position in its 16-bit word. So the sum of the constant part is computed once.
// For each frame, one addition is needed for each changing field and each checksum that covers it. This is the
// incremental update of RFC 1624 (equation 3: HC' = ~(~HC + ~m + m')) with an old value m of zero.
//
// A checksum field may itself be covered by the checksum of an outer header. For example, the UDP checksum of an inner
// packet is covered by the checksum of the outer UDP header of VXLAN. So checksums are computed from the inside out,
// and each is added to the outer checksums that cover it.

// sum describes one checksum field. Offsets are in bytes from the start of the frame.
type sum struct {
	at     int    // offset of the checksum field
	base   uint64 // the partial sum of the constant part
	start  int    // start of the covered range
	stop   int    // end of the covered range; 0: the end of the packet
	pseudo bool   // the length from start to the end of the range is part of the sum (pseudo header)
	noZero bool
	// left means that the device computes the checksum. The field then contains only the sum of the pseudo header, not
	// complemented, as devices expect.
	left  bool
	in    uint32 // bit set of the checksums that cover this field
	proto wire.Protocol
	ip    *placed // the IP layer whose addresses are in the pseudo header
}

// plan lists the checksum and length fields for which the template gives no value, so that they have to be computed.
func (p *Program) plan(layers []placed) {
	for i := len(layers) - 1; i >= 0; i-- {
		l := &layers[i]
		switch _, given := l.given["checksum"]; {
		case l.sum.at == 0 || given:
		case l.sum.crc:
			p.crcs = append(p.crcs, crc{at: l.at + l.sum.at, start: l.at})
		default:
			s := sum{at: l.at + l.sum.at, start: l.at, noZero: l.sum.noZero}
			if l.sum.header {
				s.stop = l.at + l.length
			}
			if ip := ipBefore(layers[:i]); l.sum.pseudo && ip != nil {
				s.pseudo, s.proto, s.ip = true, l.proto, ip
			}
			p.sums = append(p.sums, s)
		}
		if _, given := l.given["len"]; l.lenAt != 0 && !given {
			p.lens = append(p.lens, lengthField{at: l.at + l.lenAt, base: l.at + l.lenBase})
		}
	}
	if i, ok := p.transport(); ok && p.options.LeaveChecksum {
		p.sums[i].left = true
	}
	for i := range p.sums {
		p.sums[i].in = p.covers(p.sums[i].at)
	}
	for i := range p.lens {
		p.lens[i].sums = p.covers(p.lens[i].at)
	}
	for i := range p.crcs {
		p.crcs[i].sums = p.covers(p.crcs[i].at)
	}
}

// transport returns the index of the checksum with a pseudo header. ok is false unless there is exactly one.
func (p *Program) transport() (at int, ok bool) {
	count := 0
	for i := range p.sums {
		if p.sums[i].pseudo {
			at = i
			count++
		}
	}
	return at, count == 1
}

// Checksum describes the checksum that is left to the device: the start of the bytes that it covers, and the offset
// from there to its field. Both are in bytes; start counts from the start of the frame. ok is false if no checksum is
// left to the device.
func (p *Program) Checksum() (start, offset int, ok bool) {
	if i, ok := p.transport(); ok && p.sums[i].left {
		return p.sums[i].start, p.sums[i].at - p.sums[i].start, true
	}
	return 0, 0, false
}

func ipBefore(layers []placed) *placed {
	for i := len(layers) - 1; i >= 0; i-- {
		if layers[i].isIP() {
			return &layers[i]
		}
	}
	return nil
}

// covers returns the bit set of the checksums that cover the byte at an offset. It does not include a checksum whose
// own field is at that offset.
func (p *Program) covers(at int) (set uint32) {
	for i := range p.sums {
		s := &p.sums[i]
		if !s.left && at != s.at && at >= s.start && (s.stop == 0 || at < s.stop) {
			set |= 1 << i
		}
	}
	return set
}

// cover determines, for each changing field, the checksums that cover it.
func (p *Program) cover() {
	for i := range p.vary {
		v := &p.vary[i]
		v.sums = p.covers(v.at)
		for j := range p.sums {
			if ip := p.sums[j].ip; ip != nil && v.inAddresses(ip) {
				v.sums |= 1 << j
			}
		}
	}
}

// addresses returns the byte range of the source and destination addresses in an IP header.
func (p *placed) addresses() (from, to int) {
	if p.kind.carries == proto4 {
		return p.at + 12, p.at + 20
	}
	return p.at + 8, p.at + 40
}

// constants computes the sums of the constant part. In the prototype it sets checksum and length fields to zero; they
// stay zero there. Changing fields are zero in the prototype already.
func (p *Program) constants() {
	for i := range p.sums {
		p.proto[p.sums[i].at], p.proto[p.sums[i].at+1] = 0, 0
	}
	for i := range p.lens {
		p.proto[p.lens[i].at], p.proto[p.lens[i].at+1] = 0, 0
	}
	for i := range p.crcs {
		clear(p.proto[p.crcs[i].at:][:crcLen])
	}
	for i := range p.sums {
		s := &p.sums[i]
		stop := s.stop
		if stop == 0 {
			stop = p.payload
		}
		if !s.left {
			s.base = uint64(wire.Sum(p.proto[s.start:stop], 0))
		}
		if s.ip != nil {
			from, to := s.ip.addresses()
			s.base += uint64(wire.Sum(p.proto[from:to], 0)) + uint64(s.proto)
		}
	}
	body := p.proto[p.payload:p.tail()]
	p.prefix = make([]uint16, len(body)/2+1)
	for i := 1; i < len(p.prefix); i++ {
		p.prefix[i] = wire.Sum(body[2*i-2:2*i], p.prefix[i-1])
	}
}

// bodySum returns the partial sum of the first n bytes of the payload.
func (p *Program) bodySum(n int) uint64 {
	s := uint64(p.prefix[n/2])
	if n%2 != 0 {
		s += uint64(p.proto[p.payload+n-1]) << 8
	}
	return s
}

// fold adds the 16-bit words of a with end-around carry.
func fold(a uint64) uint64 {
	a = a>>32 + a&0xffffffff
	a = a>>16 + a&0xffff
	a = a>>16 + a&0xffff
	return a>>16 + a&0xffff
}
