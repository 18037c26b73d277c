package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"loam/wire"
)

// value is the content of a field: a number of up to 128 bits. So ports, MAC addresses and IPv6 addresses are stepped
// and cycled by the same arithmetic.
type value struct{ hi, lo uint64 }

func (v value) add(o value) value {
	lo, carry := bits.Add64(v.lo, o.lo, 0)
	hi, _ := bits.Add64(v.hi, o.hi, carry)
	return value{hi, lo}
}

func (v value) sub(o value) value {
	lo, borrow := bits.Sub64(v.lo, o.lo, 0)
	hi, _ := bits.Sub64(v.hi, o.hi, borrow)
	return value{hi, lo}
}

func (v value) less(o value) bool { return v.hi < o.hi || v.hi == o.hi && v.lo < o.lo }

func (v value) and(o value) value { return value{v.hi & o.hi, v.lo & o.lo} }

// times returns v*n modulo 2^128.
func (v value) times(n uint64) value {
	hi, lo := bits.Mul64(v.lo, n)
	return value{hi + v.hi*n, lo}
}

// ones returns the largest value of width bits.
func ones(width int) value {
	switch {
	case width >= 128:
		return value{^uint64(0), ^uint64(0)}
	case width > 64:
		return value{1<<(width-64) - 1, ^uint64(0)}
	case width == 64:
		return value{0, ^uint64(0)}
	}
	return value{0, 1<<width - 1}
}

func addrValue(a netip.Addr) value {
	if a.Is4() {
		b := a.As4()
		return value{0, uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return value{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func macValue(m wire.MAC) value {
	return value{0, uint64(binary.BigEndian.Uint16(m[:]))<<32 | uint64(binary.BigEndian.Uint32(m[2:]))}
}

// form is the notation of a field's values in a template.
type form uint8

const (
	number   form = iota // decimal or hexadecimal: 53, 0x35
	mac                  // Ethernet address: 02:00:00:00:00:01
	address4             // IPv4 address: 192.0.2.1
	address6             // IPv6 address: 2001:db8::1
	tcpFlags             // letters of the TCP flags that are set, such as SA, or a number
)

// describe returns a description of a single value of the field, for error messages.
func (f *field) describe() string {
	switch f.form {
	case mac:
		return "a MAC address such as 02:00:00:00:00:01"
	case address4:
		return "an IPv4 address"
	case address6:
		return "an IPv6 address"
	case tcpFlags:
		return "letters of FSRPAUECN, or a number from 0 to 511"
	}
	return fmt.Sprintf("a number from 0 to %d", ones(f.width).lo)
}

var errForm = errors.New("not of this form")

// parseValue parses one value of the field.
func (f *field) parseValue(s string) (value, error) {
	switch f.form {
	case mac:
		m, err := net.ParseMAC(s)
		if err != nil || len(m) != 6 {
			return value{}, errForm
		}
		return macValue(wire.MAC(m)), nil
	case address4, address6:
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" || a.Is4() != (f.form == address4) {
			return value{}, errForm
		}
		return addrValue(a), nil
	case tcpFlags:
		if v, ok := parseFlags(s); ok {
			return v, nil
		}
	}
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil || ones(f.width).lo < n {
		return value{}, errForm
	}
	return value{0, n}, nil
}

// parseFlags parses the letters that wire.TCPFlags.String produces.
func parseFlags(s string) (v value, ok bool) {
	for _, letter := range s {
		bit := strings.IndexRune("FSRPAUECN", letter)
		if bit < 0 {
			return value{}, false
		}
		v.lo |= 1 << bit
	}
	return v, s != ""
}
