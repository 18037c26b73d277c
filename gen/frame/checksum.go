package frame

import "loam/wire"

// Checksums. The Internet checksum is linear: the sum of a frame is the sum of
// what does not change, plus the sum of each field that does, at its place in
// its 16-bit word. So the sum of the prototype is taken once, and a frame costs
// one addition for each changing field and each checksum that covers it. That is
// the incremental update of RFC 1624 (equation 3: HC' = ~(~HC + ~m + m')) with
// the old value m zero.
//
// A checksum field is itself covered by the checksums of the headers outside
// (an inner UDP checksum by the outer UDP header of VXLAN), so checksums are
// computed from the inside out and each is added to those outside.

// sum is one checksum field.
type sum struct {
	at     int    // of the field
	base   uint64 // the sum of what does not change
	start  int    // of what it covers
	stop   int    // of what it covers; 0: to the end of the packet
	pseudo bool   // the length from start to the end counts too
	noZero bool
	// left to the device: here stands the sum of the pseudo header only, not inverted,
	// as devices want it.
	left  bool
	in    uint32 // which sums cover this field, as bits
	proto wire.Protocol
	ip    *placed // of the pseudo header
}

// plan lists the checksums and lengths that are computed: all that are not given.
func (p *Program) plan(layers []placed) {
	for i := len(layers) - 1; i >= 0; i-- {
		l := &layers[i]
		if _, given := l.given["checksum"]; l.sum.at != 0 && !given {
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
}

// transport is the one checksum that has a pseudo header, if there is one.
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

// Checksum is where the checksum that is left to the device begins to count, and where,
// from there, it goes; ok is false if none is. The bytes are those of the whole frame.
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

// covers is the set of sums, as bits, that cover the byte at an offset, except
// the sum whose field it is.
func (p *Program) covers(at int) (set uint32) {
	for i := range p.sums {
		s := &p.sums[i]
		if !s.left && at != s.at && at >= s.start && (s.stop == 0 || at < s.stop) {
			set |= 1 << i
		}
	}
	return set
}

// cover notes for each changing field which sums cover it.
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

// addresses is where source and destination stand in an IP header.
func (p *placed) addresses() (from, to int) {
	if p.kind.carries == proto4 {
		return p.at + 12, p.at + 20
	}
	return p.at + 8, p.at + 40
}

// constants computes the sum of what does not change, with checksums, lengths
// and changing fields zero, as they are in the prototype from here on.
func (p *Program) constants() {
	for i := range p.sums {
		p.proto[p.sums[i].at], p.proto[p.sums[i].at+1] = 0, 0
	}
	for i := range p.lens {
		p.proto[p.lens[i].at], p.proto[p.lens[i].at+1] = 0, 0
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

// bodySum is the sum of the first n bytes of the payload.
func (p *Program) bodySum(n int) uint64 {
	s := uint64(p.prefix[n/2])
	if n%2 != 0 {
		s += uint64(p.proto[p.payload+n-1]) << 8
	}
	return s
}

// fold adds the 16-bit words of a with the carries.
func fold(a uint64) uint64 {
	a = a>>32 + a&0xffffffff
	a = a>>16 + a&0xffff
	a = a>>16 + a&0xffff
	return a>>16 + a&0xffff
}
