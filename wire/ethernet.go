package wire

import (
	"encoding/binary"
	"fmt"
)

// Ethernet II framing with IEEE 802.1Q tags (IEEE 802.3 clause 3, 802.1Q clause 9). Frames with a length in place of
// the type (802.3 framing) are rejected, because no protocol in Loam uses them.

// MAC is a 48-bit link-layer address.
type MAC [6]byte

// Broadcast is the address of all stations on a link.
var Broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// IsMulticast reports whether the group bit is set. It is true for Broadcast, too.
func (m MAC) IsMulticast() bool { return m[0]&1 != 0 }

// IsZero reports whether m is the zero value, which means no address.
func (m MAC) IsZero() bool { return m == MAC{} }

// String returns the usual colon notation.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// EtherType identifies the protocol inside an Ethernet frame.
type EtherType uint16

// EtherTypes (IANA ieee-802-numbers).
const (
	TypeIPv4 EtherType = 0x0800
	TypeARP  EtherType = 0x0806
	TypeVLAN EtherType = 0x8100 // IEEE 802.1Q C-tag
	TypeQinQ EtherType = 0x88a8 // IEEE 802.1ad S-tag
	TypeIPv6 EtherType = 0x86dd
	TypeTEB  EtherType = 0x6558 // Ethernet frame inside GRE (RFC 7637 section 3.2)
	TypeMPLS EtherType = 0x8847 // unicast or downstream-assigned label (RFC 5332)

	MinEtherType EtherType = 0x0600 // smaller values in the type field are a length (802.3)
)

// String returns the name of the type. For a value below MinEtherType it returns the number of bytes; for an unknown
// type it returns the number in hexadecimal, as IANA writes it.
func (t EtherType) String() string {
	switch t {
	case TypeIPv4:
		return "IPv4"
	case TypeARP:
		return "ARP"
	case TypeVLAN:
		return "VLAN"
	case TypeQinQ:
		return "QinQ"
	case TypeIPv6:
		return "IPv6"
	case TypeTEB:
		return "TEB"
	case TypeMPLS:
		return "MPLS"
	}
	if t < MinEtherType {
		return fmt.Sprintf("length %d", uint16(t))
	}
	return fmt.Sprintf("0x%04x", uint16(t))
}

// Sizes of Ethernet headers, and the smallest payload that IEEE 802.3 allows without padding, in bytes.
const (
	EthernetLen  = 14
	VLANTagLen   = 4
	MinEthernet  = 46
	maxVLANDepth = 2
)

// VLAN is one VLAN tag: TPID and TCI. The zero value means no tag.
type VLAN struct {
	TPID EtherType // TypeVLAN or TypeQinQ; zero: no tag
	TCI  uint16    // priority (3 bits), drop eligible (1 bit), VLAN identifier (12 bits)
}

// ID returns the VLAN identifier, 0 to 4095.
func (v VLAN) ID() uint16 { return v.TCI & 0xfff }

// Ethernet is a frame header with up to two VLAN tags, the outer one first.
type Ethernet struct {
	Dst, Src MAC
	Tags     [maxVLANDepth]VLAN
	Type     EtherType // type of the payload, which follows the tags
}

// ParseEthernet splits a frame into header and payload. The payload may include padding. The header of the inner
// protocol gives its real length.
func ParseEthernet(b []byte) (h Ethernet, payload []byte, err error) {
	if len(b) < EthernetLen {
		return h, nil, ErrShort
	}
	h.Dst, h.Src = MAC(b[0:6]), MAC(b[6:12])
	h.Type = EtherType(binary.BigEndian.Uint16(b[12:]))
	b = b[EthernetLen:]
	for i := 0; h.Type == TypeVLAN || h.Type == TypeQinQ; i++ {
		if i == maxVLANDepth {
			return h, nil, ErrField
		}
		if len(b) < VLANTagLen {
			return h, nil, ErrShort
		}
		h.Tags[i] = VLAN{TPID: h.Type, TCI: binary.BigEndian.Uint16(b)}
		h.Type = EtherType(binary.BigEndian.Uint16(b[2:]))
		b = b[VLANTagLen:]
	}
	if h.Type < MinEtherType {
		return h, nil, ErrField
	}
	return h, b, nil
}

// Len returns the size of the header with its tags.
func (h *Ethernet) Len() int {
	n := EthernetLen
	for _, t := range h.Tags {
		if t.TPID != 0 {
			n += VLANTagLen
		}
	}
	return n
}

// Put writes the header into the first Len bytes of b.
func (h *Ethernet) Put(b []byte) {
	_ = b[EthernetLen-1]
	copy(b[0:6], h.Dst[:])
	copy(b[6:12], h.Src[:])
	at := 12
	for _, t := range h.Tags {
		if t.TPID == 0 {
			continue
		}
		binary.BigEndian.PutUint16(b[at:], uint16(t.TPID))
		binary.BigEndian.PutUint16(b[at+2:], t.TCI)
		at += VLANTagLen
	}
	binary.BigEndian.PutUint16(b[at:], uint16(h.Type))
}
