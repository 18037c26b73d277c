package frame

import (
	"encoding/binary"
	"math/bits"
)

// varying is a field that changes from frame to frame.
type varying struct {
	at       int // offset of the first byte that contains a bit of the field
	size     int // number of bytes that contain bits of the field, at most 8; 16 for an IPv6 address
	shift    int // number of bits after the field in the last of the size bytes
	whole    bool
	sumShift int // number of bits after the field in the last 16-bit word that contains a part of it
	width    int
	sums     uint32
	salt     uint64
	pattern
}

func newVarying(l *placed, f *field, p pattern) varying {
	first, end := f.bit, f.bit+f.width
	return varying{
		at: l.at + first/8, size: (end+7)/8 - first/8, shift: (8 - end%8) % 8,
		whole:    first%8 == 0 && end%8 == 0,
		sumShift: (16 - end%16) % 16, width: f.width,
		salt: salt(l.name + "." + f.name), pattern: p,
	}
}

// inAddresses reports whether the field is an address of the given IP header.
func (v *varying) inAddresses(ip *placed) bool {
	from, to := ip.addresses()
	return v.at >= from && v.at < to
}

// put writes the value x of the field into b. b starts at byte skip of the frame.
func (v *varying) put(b []byte, skip int, x value) {
	b = b[v.at-skip : v.at-skip+v.size]
	switch {
	case v.size == 16:
		binary.BigEndian.PutUint64(b, x.hi)
		binary.BigEndian.PutUint64(b[8:], x.lo)
	case v.whole && v.size == 2:
		binary.BigEndian.PutUint16(b, uint16(x.lo))
	case v.whole && v.size == 4:
		binary.BigEndian.PutUint32(b, uint32(x.lo))
	default:
		mask := ones(v.width).lo << v.shift
		n := x.lo << v.shift
		for i := len(b) - 1; i >= 0; i-- {
			b[i] = b[i]&^byte(mask) | byte(n)
			mask, n = mask>>8, n>>8
		}
	}
}

// sumOf returns the number that value x of the field adds to a checksum.
func (v *varying) sumOf(x value) uint64 {
	if v.size == 16 {
		return fold(x.hi) + fold(x.lo)
	}
	return fold(x.lo << v.sumShift)
}

// Filler writes the frames of a program one after another, without allocating memory. Only one goroutine may use it at
// a time.
type Filler struct {
	*Program
	generators []generator
	sizer      sizer
	end        int    // end of the last packet written
	same       []byte // the content of every frame if all frames are identical, otherwise nil
}

// Filler returns the Filler of one of several shards (senders), counted from 0. The Fillers of all shards together
// produce the frames that a single Filler would, each frame once.
func (p *Program) Filler(shard, shards int) *Filler {
	f := &Filler{Program: p, sizer: newSizer(p.sizes, shard, shards, p.options.Seed)}
	for i := range p.vary {
		v := &p.vary[i]
		f.generators = append(f.generators, newGenerator(v.pattern, v.width, shard, shards, p.options.Seed, v.salt))
	}
	if len(p.vary) == 0 && p.sizes.low == p.sizes.high {
		same := make([]byte, p.MaxLen())
		f.same = same[:f.compose(same)]
	}
	return f
}

// maxSums is the largest number of checksums in a template: one per layer.
const maxSums = MaxLayers

// Next writes the next frame into slot, which must have at least MaxLen bytes. It returns the length of the frame
// without FCS and skipped bytes.
func (f *Filler) Next(slot []byte) int {
	if f.same != nil {
		return copy(slot, f.same)
	}
	return f.compose(slot)
}

// Same returns the content of every frame if all frames are identical, otherwise nil. The caller must not modify
// it.
func (f *Filler) Same() []byte { return f.same }

// compose writes the next frame field by field.
func (f *Filler) compose(slot []byte) int {
	skip := f.options.Skip
	n := f.sizer.next()
	end := f.packetEnd(n)
	f.end = end
	slot = slot[:n-skip]
	copy(slot, f.proto[skip:n])

	var acc [maxSums]uint64
	body := uint64(0)
	if len(f.sums) > 0 {
		body = f.bodySum(end - f.payload)
	}
	for i := range f.sums {
		s := &f.sums[i]
		acc[i] = s.base
		if s.stop == 0 && !s.left {
			acc[i] += body
		}
		if s.pseudo {
			acc[i] += uint64(end - s.start)
		}
	}
	for i := range f.lens {
		l := &f.lens[i]
		if length := end - l.base; l.at >= skip {
			binary.BigEndian.PutUint16(slot[l.at-skip:], uint16(length))
			add(&acc, l.sums, uint64(length))
		}
	}
	for i := range f.generators {
		v := &f.vary[i]
		x := f.generators[i].next()
		v.put(slot, skip, x)
		add(&acc, v.sums, v.sumOf(x))
	}
	for i := range f.sums {
		if s := &f.sums[i]; s.at >= skip {
			c := ^uint16(fold(acc[i]))
			switch {
			case s.left:
				c = ^c
			case c == 0 && s.noZero:
				c = 0xffff
			}
			binary.BigEndian.PutUint16(slot[s.at-skip:], c)
			add(&acc, s.in, uint64(c))
		}
	}
	if f.options.Reserve == 0 {
		f.Seal(slot)
	}
	return n - skip
}

// add adds x to those sums of acc whose bits are set in the parameter set.
func add(acc *[maxSums]uint64, set uint32, x uint64) {
	for ; set != 0; set &= set - 1 {
		acc[bits.TrailingZeros32(set)] += x
	}
}

// Body returns the payload of the frame that Next has just written into slot.
func (f *Filler) Body(slot []byte) []byte {
	return slot[f.payload-f.options.Skip : f.end-f.options.Skip]
}

// WireLen returns the size on the wire of a frame for which Next returned n. It includes FCS and skipped bytes, but
// not preamble and inter-frame gap.
func (f *Filler) WireLen(n int) int { return n + f.options.Skip + FCSLen }
