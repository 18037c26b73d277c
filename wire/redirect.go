package wire

import "net/netip"

// IPv6 redirects (RFC 4861 section 4.5): a router sends a host the address of a better first hop for a destination.

// RedirectLen is the size of the message without options in bytes.
const RedirectLen = 40

// Redirect is a redirect message. The packet that it quotes is skipped: it is not needed as evidence, because the hop
// limit already proves that a neighbour has sent the message.
type Redirect struct {
	Target   netip.Addr // the better first hop: a router's link-local address, or the destination itself
	Dst      netip.Addr // destination of the redirected packets
	LinkAddr MAC        // link-layer address of the target; zero: not given
}

// ParseRedirect parses a whole ICMPv6 message. Of the checks in RFC 4861 section 8.1, it performs those that need only
// the message: code, length, both addresses and the structure of the options. It does not verify the checksum.
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

// Len returns the size of the message in bytes.
func (r *Redirect) Len() int { return RedirectLen + r.LinkAddr.optionLen() }

// Put writes the message with a zero checksum into the first Len bytes of b. See PutICMPv6Checksum.
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
