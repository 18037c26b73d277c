package target

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
)

// number is an address as a 128-bit number, for arithmetic. An IPv4 address uses only lo.
type number struct{ hi, lo uint64 }

// most returns the address in which all bits are set, of IPv4 or IPv6.
func most(is4 bool) number {
	if is4 {
		return number{0, 1<<32 - 1}
	}
	return number{^uint64(0), ^uint64(0)}
}

func numberOf(a netip.Addr) number {
	if a.Is4() {
		b := a.As4()
		return number{0, uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return number{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func (n number) addr(is4 bool) netip.Addr {
	if is4 {
		return netip.AddrFrom4([4]byte{byte(n.lo >> 24), byte(n.lo >> 16), byte(n.lo >> 8), byte(n.lo)})
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], n.hi)
	binary.BigEndian.PutUint64(b[8:], n.lo)
	return netip.AddrFrom16(b)
}

func (n number) compare(o number) int {
	switch {
	case n == o:
		return 0
	case n.hi < o.hi || n.hi == o.hi && n.lo < o.lo:
		return -1
	}
	return 1
}

func (n number) plus(k uint64) number {
	lo, c := bits.Add64(n.lo, k, 0)
	return number{n.hi + c, lo}
}

func (n number) minus(o number) number {
	lo, c := bits.Sub64(n.lo, o.lo, 0)
	hi, _ := bits.Sub64(n.hi, o.hi, c)
	return number{hi, lo}
}

// Range is the range of addresses from First to Last, both included. Both must have the same IP version. ParseRange
// parses the text form.
type Range struct{ First, Last netip.Addr }

// RangeOf returns the range of addresses in a prefix.
func RangeOf(p netip.Prefix) Range {
	first := p.Masked().Addr()
	last := numberOf(first)
	ones := most(first.Is4())
	shift := uint(p.Bits())
	if first.Is4() {
		last.lo |= ones.lo >> shift
	} else if shift < 64 {
		last = number{last.hi | ones.hi>>shift, ones.lo}
	} else {
		last.lo |= ones.lo >> (shift - 64)
	}
	return Range{first, last.addr(first.Is4())}
}

// Size returns the number of addresses. ok is false if it is 2^64 or more.
func (r Range) Size() (n uint64, ok bool) {
	d := numberOf(r.Last).minus(numberOf(r.First))
	return d.lo + 1, d.hi == 0 && d.lo != ^uint64(0)
}

// String returns the range in a form that ParseRange accepts: as a prefix if possible.
func (r Range) String() string {
	if r.First == r.Last {
		return r.First.String()
	}
	for bits := r.First.BitLen(); bits >= 0; bits-- {
		if p := netip.PrefixFrom(r.First, bits); p == p.Masked() && RangeOf(p) == r {
			return p.String()
		}
	}
	return fmt.Sprintf("%v-%v", r.First, r.Last)
}
