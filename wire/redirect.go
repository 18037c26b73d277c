package wire

import "net/netip"

// Redirects of IPv6 (RFC 4861 section 4.5): a router says which neighbour packets to a
// destination are better given to.

// RedirectLen is the size of the message without options in bytes.
const RedirectLen = 40

// Redirect is such a message. What it quotes of the packet that it is about is skipped: the
// hop limit says that a neighbour has sent it.
type Redirect struct {
	Target   netip.Addr // the better first hop: a router's link-local address, or the destination itself
	Dst      netip.Addr // of the packets
	LinkAddr MAC        // the target's; zero: not said
}

// ParseRedirect reads a whole ICMPv6 message, by section 8.1 as far as that is about the
// message itself: code, length, both addresses, and the structure of options. It does not
// check the checksum.
func ParseRedirect(b []byte) (r Redirect, err error) {
	if err := checkRouterMessage(b, ICMPv6Redirect, RedirectLen); err != nil {
		return r, err
	}
	r.Target, r.Dst = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	if r.Dst.IsMulticast() || r.Target != r.Dst && !r.Target.IsLinkLocalUnicast() {
		return r, ErrField
	}
	r.LinkAddr, err = linkAddrOf(b[RedirectLen:], optTargetLinkAddr)
	return r, err
}

// Len is the size of the message in bytes.
func (r *Redirect) Len() int { return RedirectLen + r.LinkAddr.optionLen() }

// Put writes the message with an empty checksum into the first Len bytes of b: see
// PutICMPv6Checksum.
func (r *Redirect) Put(b []byte) {
	ICMPv6{Type: ICMPv6Redirect}.Put(b)
	target, dst := r.Target.As16(), r.Dst.As16()
	copy(b[8:], target[:])
	copy(b[24:], dst[:])
	if !r.LinkAddr.IsZero() {
		b = b[RedirectLen:]
		b[0], b[1] = optTargetLinkAddr, linkAddrOptionLen/8
		copy(b[2:], r.LinkAddr[:])
	}
}
