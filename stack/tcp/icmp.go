package tcp

// ICMP errors (RFC 9293 section 3.9.2.2, RFC 1122 section 4.2.3.9, RFC 5927).

// ICMPKind classifies an ICMP error about one of our segments.
type ICMPKind uint8

// Values of ICMPKind: what an ICMP error means for a connection.
const (
	ICMPUnreachable ICMPKind = iota // a soft error: network or host unreachable, time exceeded, parameter problem
	ICMPRefused                     // a hard error: protocol or port unreachable, or prohibited
	ICMPTooBig                      // fragmentation needed, or packet too big
	ICMPNoNeighbour                 // no ICMP error: the next hop on our own link does not answer
)

// minReportedMSS is the minimum to which an ICMP message can reduce the segment size: the MTU of every IPv4
// host (RFC 9293 section 3.7.1) less the headers. Smaller values are more likely forged than real (RFC 5927
// section 7.2).
const minReportedMSS = defaultMSS4

// ICMP processes an ICMP error that quotes a segment of this connection with sequence number seq. For
// ICMPTooBig, mss is the payload that the reported MTU allows. ICMP reports whether it accepted the message;
// the owner may then record the MTU for the path.
//
// A message about a segment that is not in flight is rejected (RFC 5927 section 4.1). No message ends an
// established connection (section 5.2).
//
// An attempt to connect continues after a soft unreachable error, because routes recover (RFC 1122 section
// 4.2.3.9). ICMPNoNeighbour ends the attempt, as on Linux: the failure is on our own link and certain, and no
// router can repair it.
func (c *Conn) ICMP(now Time, kind ICMPKind, seq uint32, mss int) bool {
	if !Seq(seq).In(c.snd.una, c.snd.nxt) {
		c.count(DropICMP)
		return false
	}
	switch {
	case kind == ICMPTooBig:
		mss = max(mss, minReportedMSS)
		if mss >= int(c.snd.pathMSS) {
			c.count(DropICMP)
			return false
		}
		c.SetMSS(now, mss)
	case kind == ICMPRefused && !c.state.synchronized():
		c.close(wasRefused)
	case kind == ICMPNoNeighbour && !c.state.synchronized():
		c.close(unreachable)
	default:
		c.soft = unreachable
	}
	return true
}

// HasSent reports whether a segment that begins at seq may be in flight. A bare acknowledgment begins at
// SND.NXT, which counts as sent.
func (c *Conn) HasSent(seq uint32) bool {
	return Seq(seq).In(c.snd.una, c.snd.nxt+1)
}
