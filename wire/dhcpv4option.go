package wire

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// DHCP options for IPv4 (RFC 2132 and the RFCs named below). An option consists of a code octet, a length octet that
// counts only the data, and the data. Options are in the field options. With option overload, the fields for the boot
// file and the server name also contain options.
//
// An option may be split into several pieces, because it is longer than 255 bytes or because it does not fit into one
// field. The pieces are joined in the order options field, boot file, server name (RFC 3396). So DHCPv4Options keeps
// the bytes of all options in their original order, and looks an option up by its code. A table of 254 slices for each
// message would cost more than the few lookups.

// DHCPv4Option is the code of a DHCP option.
type DHCPv4Option uint8

// Codes of DHCP options (IANA bootp-dhcp-parameters).
const (
	DHCPv4OptPad              DHCPv4Option = 0
	DHCPv4OptSubnetMask       DHCPv4Option = 1
	DHCPv4OptRouter           DHCPv4Option = 3
	DHCPv4OptDNS              DHCPv4Option = 6
	DHCPv4OptHostName         DHCPv4Option = 12
	DHCPv4OptDomainName       DHCPv4Option = 15
	DHCPv4OptMTU              DHCPv4Option = 26
	DHCPv4OptBroadcast        DHCPv4Option = 28
	DHCPv4OptNTP              DHCPv4Option = 42
	DHCPv4OptRequestedIP      DHCPv4Option = 50
	DHCPv4OptLeaseTime        DHCPv4Option = 51
	DHCPv4OptOverload         DHCPv4Option = 52
	DHCPv4OptMessageType      DHCPv4Option = 53
	DHCPv4OptServerID         DHCPv4Option = 54
	DHCPv4OptParameterRequest DHCPv4Option = 55
	DHCPv4OptMessage          DHCPv4Option = 56 // error message for users
	DHCPv4OptMaxMessageSize   DHCPv4Option = 57
	DHCPv4OptT1               DHCPv4Option = 58  // renewal time
	DHCPv4OptT2               DHCPv4Option = 59  // rebinding time
	DHCPv4OptVendorClass      DHCPv4Option = 60  // type and configuration of the client
	DHCPv4OptClientID         DHCPv4Option = 61  // identifier of the client (also RFC 6842)
	DHCPv4OptDomainSearch     DHCPv4Option = 119 // domain search list (RFC 3397)
	DHCPv4OptClasslessRoutes  DHCPv4Option = 121 // routes with prefix lengths (RFC 3442)
	DHCPv4OptEnd              DHCPv4Option = 255
)

// Bits of DHCPv4OptOverload (RFC 2132 section 9.3).
const (
	dhcpv4OverloadFile  = 1
	dhcpv4OverloadSName = 2
)

// DHCPv4Type is the message type (RFC 2132 section 9.6).
type DHCPv4Type uint8

// Types of DHCP messages.
const (
	DHCPv4Discover DHCPv4Type = 1
	DHCPv4Offer    DHCPv4Type = 2
	DHCPv4Request  DHCPv4Type = 3
	DHCPv4Decline  DHCPv4Type = 4
	DHCPv4Ack      DHCPv4Type = 5
	DHCPv4Nak      DHCPv4Type = 6
	DHCPv4Release  DHCPv4Type = 7
	DHCPv4Inform   DHCPv4Type = 8
)

// DHCPv4Options holds the options of a message. The zero value has none. The Add methods allocate. The lookup of an
// option that is split into pieces allocates, too.
type DHCPv4Options struct {
	areas [3][]byte // the contents of the options field, the boot file and the server name, without end option and padding
}

// nextDHCPv4Option returns the first option of area, and the rest of area after it. ok is false at the end and for a
// malformed option; bad is true only for a malformed option. A missing end option is accepted, since some senders omit
// it.
func nextDHCPv4Option(area []byte) (code DHCPv4Option, data, rest []byte, ok, bad bool) {
	for len(area) > 0 && area[0] == uint8(DHCPv4OptPad) {
		area = area[1:]
	}
	if len(area) == 0 || area[0] == uint8(DHCPv4OptEnd) {
		return 0, nil, nil, false, false
	}
	if len(area) < 2 || 2+int(area[1]) > len(area) {
		return 0, nil, nil, false, true
	}
	n := 2 + int(area[1])
	return DHCPv4Option(area[0]), area[2:n:n], area[n:], true, false
}

// parseOptions finds the areas of the message b that contain options, and checks the options.
func (o *DHCPv4Options) parseOptions(b []byte) (overload int, err error) {
	var size [256]int32 // total bytes of each option, over all pieces
	for i := range size {
		size[i] = -1 // the option is absent
	}
	if err := o.parseArea(0, b[DHCPv4MinLen:], &size); err != nil {
		return 0, err
	}
	if n := size[DHCPv4OptOverload]; n >= 0 {
		if n != 1 {
			return 0, ErrOption
		}
		overload = o.overload()
		if overload < dhcpv4OverloadFile || overload > dhcpv4OverloadFile|dhcpv4OverloadSName {
			return 0, ErrField
		}
	}
	if overload&dhcpv4OverloadFile != 0 {
		if err := o.parseArea(1, b[dhcpv4File:dhcpv4FileEnd], &size); err != nil {
			return 0, err
		}
	}
	if overload&dhcpv4OverloadSName != 0 {
		if err := o.parseArea(2, b[dhcpv4SName:dhcpv4File], &size); err != nil {
			return 0, err
		}
	}
	return overload, checkDHCPv4Sizes(&size, o)
}

// parseArea checks one area, stores it up to the end of its last option, and adds the sizes of its options to size.
func (o *DHCPv4Options) parseArea(i int, area []byte, size *[256]int32) error {
	rest := area
	for {
		code, data, next, ok, bad := nextDHCPv4Option(rest)
		if bad {
			return ErrOption
		}
		if !ok {
			n := len(area) - len(rest)
			o.areas[i] = area[:n:n] // limits the capacity, so that appending does not overwrite the message
			return nil
		}
		size[code] = max(size[code], 0) + int32(len(data))
		rest = next
	}
}

// overload returns the value of the overload option in the options field, or 0.
func (o *DHCPv4Options) overload() int {
	for area := o.areas[0]; ; {
		code, data, rest, ok, _ := nextDHCPv4Option(area)
		switch {
		case !ok:
			return 0
		case code == DHCPv4OptOverload && len(data) > 0:
			return int(data[0])
		}
		area = rest
	}
}

// checkDHCPv4Sizes checks the lengths (RFC 2132) of those options that determine how a message is handled. If an option
// is repeated, its length is the sum of the lengths.
func checkDHCPv4Sizes(size *[256]int32, o *DHCPv4Options) error {
	for _, fixed := range [...]struct {
		code DHCPv4Option
		n    int32
	}{
		{DHCPv4OptMessageType, 1}, {DHCPv4OptServerID, 4}, {DHCPv4OptRequestedIP, 4},
		{DHCPv4OptLeaseTime, 4}, {DHCPv4OptT1, 4}, {DHCPv4OptT2, 4},
		{DHCPv4OptSubnetMask, 4}, {DHCPv4OptMaxMessageSize, 2},
	} {
		if n := size[fixed.code]; n >= 0 && n != fixed.n {
			return ErrOption
		}
	}
	if o.MessageType() == 0 {
		return ErrField
	}
	return nil
}

// Each calls the function yield with each option until yield returns false. For a split
// option it calls yield with each piece, in the order in which the pieces are joined. It
// omits the overload option.
func (o *DHCPv4Options) Each(yield func(code DHCPv4Option, data []byte) bool) {
	for _, area := range o.areas {
		for {
			code, data, rest, ok, _ := nextDHCPv4Option(area)
			if !ok {
				break
			}
			if code != DHCPv4OptOverload && !yield(code, data) {
				return
			}
			area = rest
		}
	}
}

// Get returns the data of an option, with its pieces joined. ok reports whether the option is present; an option that
// is present may have no data.
func (o *DHCPv4Options) Get(code DHCPv4Option) (data []byte, ok bool) {
	o.Each(func(c DHCPv4Option, piece []byte) bool {
		switch {
		case c != code:
		case !ok:
			data, ok = piece, true
		default:
			data = append(data, piece...) // allocates, because piece has no spare capacity
		}
		return true
	})
	return data, ok
}

// len returns the number of bytes that put writes, not counting the end option.
func (o *DHCPv4Options) len() (n int) {
	o.Each(func(_ DHCPv4Option, data []byte) bool {
		n += 2 + len(data)
		return true
	})
	return n
}

// put writes all options and the end option.
func (o *DHCPv4Options) put(b []byte) {
	n := 0
	o.Each(func(code DHCPv4Option, data []byte) bool {
		b[n], b[n+1] = uint8(code), uint8(len(data))
		n += 2 + copy(b[n+2:], data)
		return true
	})
	b[n] = uint8(DHCPv4OptEnd)
}

// Add appends an option. An option longer than 255 bytes is split into pieces.
func (o *DHCPv4Options) Add(code DHCPv4Option, data []byte) {
	for first := true; first || len(data) > 0; first = false {
		n := min(len(data), 255)
		o.areas[0] = append(o.areas[0], uint8(code), uint8(n))
		o.areas[0] = append(o.areas[0], data[:n]...)
		data = data[n:]
	}
}

// AddUint8 appends an option that is one byte long.
func (o *DHCPv4Options) AddUint8(code DHCPv4Option, v uint8) { o.Add(code, []byte{v}) }

// AddUint16 appends an option that is two bytes long.
func (o *DHCPv4Options) AddUint16(code DHCPv4Option, v uint16) {
	o.Add(code, binary.BigEndian.AppendUint16(nil, v))
}

// AddDuration appends a time in seconds. DHCPv4Infinite means forever. Any other duration must be at least 0
// and less than 1<<32-1 seconds; fractions are truncated.
func (o *DHCPv4Options) AddDuration(code DHCPv4Option, d time.Duration) {
	v := uint32(1<<32 - 1)
	if d != DHCPv4Infinite {
		v = uint32(d / time.Second)
	}
	o.Add(code, binary.BigEndian.AppendUint32(nil, v))
}

// AddAddrs appends a list of IPv4 addresses.
func (o *DHCPv4Options) AddAddrs(code DHCPv4Option, addrs ...netip.Addr) {
	data := make([]byte, 0, 4*len(addrs))
	for _, a := range addrs {
		v := a.As4()
		data = append(data, v[:]...)
	}
	o.Add(code, data)
}

// AddSubnetMask appends the mask of a prefix with the given number of bits.
func (o *DHCPv4Options) AddSubnetMask(bits int) {
	o.Add(DHCPv4OptSubnetMask, binary.BigEndian.AppendUint32(nil, ^uint32(1<<(32-bits)-1)))
}

// AddDomainSearch appends a search list (RFC 3397) without compression.
func (o *DHCPv4Options) AddDomainSearch(names ...DNSName) {
	var data []byte
	for _, name := range names {
		data = name.AppendTo(data)
	}
	o.Add(DHCPv4OptDomainSearch, data)
}

// AddClasslessRoutes appends the option for routes (RFC 3442). The routes must include the default route, because a
// client that supports this option ignores DHCPv4OptRouter.
func (o *DHCPv4Options) AddClasslessRoutes(routes ...DHCPv4Route) {
	var data []byte
	for _, r := range routes {
		dst := r.Dst.Masked().Addr().As4()
		data = append(data, uint8(r.Dst.Bits()))
		data = append(data, dst[:(r.Dst.Bits()+7)/8]...)
		at := len(data)
		data = append(data, 0, 0, 0, 0)
		putGivenAddr(data[at:], r.Gateway)
	}
	o.Add(DHCPv4OptClasslessRoutes, data)
}
