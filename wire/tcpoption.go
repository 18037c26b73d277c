package wire

import "encoding/binary"

// TCP options (RFC 9293 section 3.2, IANA tcp-parameters). The options that Loam uses are parsed into fields of
// TCPOptions. Other options are skipped, as section 3.1 requires; EachTCPOption visits them, too.

// TCPOption is the kind octet of a TCP option.
type TCPOption uint8

// Kinds of TCP options. The RFC in a comment defines the option.
const (
	TCPOptEnd           TCPOption = 0
	TCPOptNop           TCPOption = 1
	TCPOptMSS           TCPOption = 2   // RFC 9293
	TCPOptWindowScale   TCPOption = 3   // RFC 7323
	TCPOptSACKPermitted TCPOption = 4   // RFC 2018
	TCPOptSACK          TCPOption = 5   // RFC 2018
	TCPOptTimestamps    TCPOption = 8   // RFC 7323
	TCPOptMD5           TCPOption = 19  // RFC 2385
	TCPOptUserTimeout   TCPOption = 28  // RFC 5482
	TCPOptAO            TCPOption = 29  // RFC 5925
	TCPOptMultipath     TCPOption = 30  // RFC 8684
	TCPOptFastOpen      TCPOption = 34  // RFC 7413
	TCPOptAccECN0       TCPOption = 172 // RFC 9768
	TCPOptAccECN1       TCPOption = 174 // RFC 9768
)

// MaxSACKBlocks is the number of SACK blocks that fit into a header without the timestamps option.
const MaxSACKBlocks = 4

// MaxWindowScale is the largest shift (RFC 7323 section 2.3). A larger received shift is replaced by this value.
const MaxWindowScale = 14

// SACKBlock is a range of sequence numbers [Left, Right).
type SACKBlock struct{ Left, Right uint32 }

// TCPOptions holds the options that Loam uses. The zero value has none.
type TCPOptions struct {
	MSS            uint16 // bytes; 0: absent or invalid, so the default of RFC 9293 section 3.7.1 applies
	HasWindowScale bool
	WindowScale    uint8 // 0 to MaxWindowScale
	SACKPermitted  bool
	HasTimestamps  bool
	NumSACK        uint8 // number of valid elements of SACK
	HasUserTimeout bool
	UserTimeout    uint16 // granularity bit (set: minutes, clear: seconds) and 15 bits of time, as in RFC 5482
	TSVal, TSEcr   uint32
	SACK           [MaxSACKBlocks]SACKBlock
	FastOpen       FastOpenCookie // the zero value: the option is absent
}

// EachTCPOption calls yield with each option in opts and its data, until yield returns false. opts is a result of
// RawTCPOptions. EachTCPOption reports whether the options that it visited were well-formed.
func EachTCPOption(opts []byte, yield func(TCPOption, []byte) bool) bool {
	for {
		kind, data, rest, ok, bad := nextOption(opts)
		if !ok {
			return !bad
		}
		if !yield(TCPOption(kind), data) {
			return true
		}
		opts = rest
	}
}

// parse stores the options in o. It returns false if an option of a known kind has a wrong length. An option in the
// wrong segment, such as MSS without SYN, is ignored. If an option is repeated, the last one is used.
func (o *TCPOptions) parse(opts []byte, syn bool) bool {
	// Fast path: the layout of nearly every segment of an established connection.
	if len(opts) == 12 && binary.BigEndian.Uint32(opts) == 0x0101080a {
		o.HasTimestamps = true
		o.TSVal, o.TSEcr = binary.BigEndian.Uint32(opts[4:]), binary.BigEndian.Uint32(opts[8:])
		return true
	}
	for {
		kind, data, rest, ok, bad := nextOption(opts)
		if !ok {
			return !bad
		}
		if !o.set(TCPOption(kind), data, syn) {
			return false
		}
		opts = rest
	}
}

// set stores the value of one option. It returns false if the length is wrong for a known kind.
func (o *TCPOptions) set(kind TCPOption, data []byte, syn bool) bool {
	switch kind {
	case TCPOptMSS:
		if len(data) != 2 {
			return false
		}
		if syn {
			o.MSS = binary.BigEndian.Uint16(data)
		}
	case TCPOptWindowScale:
		if len(data) != 1 {
			return false
		}
		if syn {
			o.HasWindowScale, o.WindowScale = true, min(data[0], MaxWindowScale)
		}
	case TCPOptSACKPermitted:
		if len(data) != 0 {
			return false
		}
		o.SACKPermitted = syn
	case TCPOptSACK:
		return o.setSACK(data)
	case TCPOptTimestamps:
		if len(data) != 8 {
			return false
		}
		o.HasTimestamps = true
		o.TSVal, o.TSEcr = binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])
	case TCPOptFastOpen:
		if syn {
			o.FastOpen, _ = NewFastOpenCookie(data)
		}
	case TCPOptUserTimeout:
		if len(data) != 2 {
			return false
		}
		o.HasUserTimeout, o.UserTimeout = true, binary.BigEndian.Uint16(data)
	}
	return true
}

func (o *TCPOptions) setSACK(data []byte) bool {
	if len(data) == 0 || len(data)%8 != 0 {
		return false
	}
	o.NumSACK = uint8(len(data) / 8) // at most MaxSACKBlocks: the options have at most 40 bytes
	o.SACK = [MaxSACKBlocks]SACKBlock{}
	for i := range o.NumSACK {
		at := data[8*i:]
		o.SACK[i] = SACKBlock{binary.BigEndian.Uint32(at), binary.BigEndian.Uint32(at[4:])}
	}
	return true
}

// Len returns the size of the options with padding in bytes: a multiple of four, at most 40. SACK blocks that do not
// fit after the other options are omitted, the last ones first. With timestamps, three blocks fit.
func (o *TCPOptions) Len() int {
	n := 0
	if o.MSS != 0 {
		n += 4
	}
	if o.HasWindowScale {
		n += 4
	}
	if o.HasTimestamps {
		n += 12
	} else if o.SACKPermitted {
		n += 4
	}
	if o.HasUserTimeout {
		n += 4
	}
	n += o.FastOpen.room(n)
	if k := o.sackRoom(n); k > 0 {
		n += 4 + 8*k
	}
	return n
}

// sackRoom returns the number of SACK blocks that fit after n bytes of other options.
func (o *TCPOptions) sackRoom(n int) int {
	return max(0, min(int(o.NumSACK), (40-n-4)/8))
}

// put writes the options. It puts padding before each option to make its size a multiple of four, so that timestamps
// are at the offset that the fast path of parse expects. SACK-permitted replaces the padding of the timestamps.
func (o *TCPOptions) put(b []byte) {
	n := 0
	if o.MSS != 0 {
		b[0], b[1] = uint8(TCPOptMSS), 4
		binary.BigEndian.PutUint16(b[2:], o.MSS)
		n = 4
	}
	switch {
	case o.HasTimestamps:
		binary.BigEndian.PutUint32(b[n:], 0x0101080a)
		if o.SACKPermitted {
			b[n], b[n+1] = uint8(TCPOptSACKPermitted), 2
		}
		binary.BigEndian.PutUint32(b[n+4:], o.TSVal)
		binary.BigEndian.PutUint32(b[n+8:], o.TSEcr)
		n += 12
	case o.SACKPermitted:
		binary.BigEndian.PutUint32(b[n:], 0x01010402)
		n += 4
	}
	if o.HasWindowScale {
		b[n], b[n+1], b[n+2], b[n+3] = uint8(TCPOptNop), uint8(TCPOptWindowScale), 3, o.WindowScale
		n += 4
	}
	if o.HasUserTimeout {
		b[n], b[n+1] = uint8(TCPOptUserTimeout), 4
		binary.BigEndian.PutUint16(b[n+2:], o.UserTimeout)
		n += 4
	}
	n += o.FastOpen.put(b[n:], o.FastOpen.room(n))
	k := o.sackRoom(n)
	if k == 0 {
		return
	}
	b[n], b[n+1], b[n+2], b[n+3] = uint8(TCPOptNop), uint8(TCPOptNop), uint8(TCPOptSACK), uint8(2+8*k)
	n += 4
	for _, block := range o.SACK[:k] {
		binary.BigEndian.PutUint32(b[n:], block.Left)
		binary.BigEndian.PutUint32(b[n+4:], block.Right)
		n += 8
	}
}
