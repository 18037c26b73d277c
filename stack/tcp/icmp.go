package tcp

// ICMP errors (RFC 9293 section 3.9.2.2, RFC 1122 section 4.2.3.9, RFC 5927).

// ICMPKind is what an ICMP message about a segment of ours says, as TCP sees it.
type ICMPKind uint8

// Kinds of messages.
const (
	ICMPUnreachable ICMPKind = iota // soft: net or host unreachable, time exceeded, parameter problem
	ICMPRefused                     // hard: protocol or port unreachable, prohibited
	ICMPTooBig                      // fragmentation needed, packet too big
	ICMPNoNeighbour                 // not ICMP, but our own link: the next hop does not answer
)

// minReportedMSS is the least that an ICMP message can push the segment size
// down to: the MTU of every IPv4 host (RFC 9293 section 3.7.1) less the headers.
// RFC 5927 section 7.2: smaller ones are more likely forged than true.
const minReportedMSS = defaultMSS4

// ICMP takes an ICMP error that quotes a segment of this connection with the
// sequence number seq. For ICMPTooBig, mss is the payload that the reported MTU
// leaves. It reports whether the message was believed: the owner may then
// remember the MTU for the path. A message about what is not in flight is not
// (RFC 5927 section 4.1), nor does any of them end a connection that is
// established (section 5.2).
//
// RFC 1122 section 4.2.3.9 has an attempt to connect go on although the host is
// said to be unreachable, since routes come back. That the next hop does not
// answer is no hearsay, though, and there is nobody on the way who could mend it:
// ICMPNoNeighbour ends the attempt, as on Linux.
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

// HasSent reports whether a segment that begins at seq may be one that is on its way. One that
// only acknowledges begins behind all that was sent.
func (c *Conn) HasSent(seq uint32) bool {
	return Seq(seq).In(c.snd.una, c.snd.nxt+1)
}
