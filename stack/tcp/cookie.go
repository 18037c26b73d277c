package tcp

// SYN cookies (RFC 4987 section 3.6). During a flood of SYNs, a listener keeps no state for them. The state
// is encoded in the sequence number of the SYN-ACK and returns in the acknowledgment:
//
//	31      27 26   24 23                           0
//	+---------+-------+------------------------------+
//	| minute  | MSS   | hash of ID, IRS, minute, MSS |
//	+---------+-------+------------------------------+
//
// The other options of the SYN do not fit. If the SYN had timestamps, the options are encoded in the lowest
// six bits of our timestamp, as on Linux, and are echoed by the peer. Otherwise the connection has neither
// window scale nor SACK. The timestamp bits are not authenticated: a peer that changes them only changes its
// own options.

import "loam/wire"

// cookieMSS holds the segment sizes that a cookie can encode. The peer's size is rounded down to one of them.
var cookieMSS = [8]uint16{minMSS, 536, 1024, 1220, 1360, 1440, 1460, 8940}

const (
	cookieHash    = 1<<24 - 1
	cookieOptions = 1<<6 - 1
	cookieSACK    = 1 << 4
	cookieECN     = 1 << 5
	cookieNoScale = 1<<4 - 1
)

// cookie returns the sequence number of a SYN-ACK.
func (k *Key) cookie(id ID, irs, minute uint32, index int) uint32 {
	front := minute<<27 | uint32(index)<<24
	return front | uint32(k.hash(tagCookie, id, uint64(irs)<<32|uint64(minute)<<3|uint64(index)))&cookieHash
}

// checkCookie returns the segment size encoded in a cookie of this minute or the previous one.
func (k *Key) checkCookie(id ID, irs, cookie, minute uint32) (mss uint16, ok bool) {
	index := int(cookie >> 24 & 7)
	for age := range uint32(2) {
		if k.cookie(id, irs, minute-age, index) == cookie {
			return cookieMSS[index], true
		}
	}
	return 0, false
}

// CookieSYNACK fills out the reply to syn without keeping any state. minute is a counter that advances once a
// minute; mss and cfg are as for Accept.
func (k *Key) CookieSYNACK(now Time, minute uint32, cfg *Config, id ID, mss int, syn *Segment, out *wire.TCP) {
	var c Conn // the connection that Accept would create, to negotiate the options
	c.init(now, cfg, id, 0, k.TimestampOffset(id), mss)
	c.accept(now, syn)
	index := 0
	for index+1 < len(cookieMSS) && cookieMSS[index+1] <= c.snd.peerMSS {
		index++
	}
	*out = wire.TCP{
		SrcPort: id.Local.Port(), DstPort: id.Remote.Port(),
		Seq: k.cookie(id, syn.Seq, minute, index), Ack: uint32(c.rcv.nxt),
		Flags:  wire.SYN | wire.ACK,
		Window: uint16(c.rcv.firstWindow()),
	}
	if !c.ts.on {
		out.MSS = c.snd.advMSS
		return
	}
	out.Flags |= c.ecn.synFlags(true)
	c.offer(now, &out.TCPOptions)
	out.TSVal = cookieTimestamp(now, &c) + c.ts.offset
}

// cookieTimestamp returns the latest tick of our clock, before the offset, whose lowest bits encode the
// negotiated options.
func cookieTimestamp(now Time, c *Conn) uint32 {
	options := uint32(cookieNoScale)
	if c.rcv.scaled {
		options = uint32(c.snd.scale)
	}
	if c.rcv.sackOK {
		options |= cookieSACK
	}
	if c.ecn.on {
		options |= cookieECN
	}
	clock := uint32(now / tick)
	at := clock&^cookieOptions | options
	if at > clock {
		at -= cookieOptions + 1
	}
	return at
}

// CookieAccept creates an established connection from the acknowledgment of a cookie SYN-ACK. It returns nil
// if ack carries no valid cookie of this minute or the previous one. The owner then passes ack to Receive,
// which processes its window and data.
func (k *Key) CookieAccept(now Time, minute uint32, cfg *Config, id ID, mss int, ack *Segment, out Outgoing, in Incoming) *Conn {
	if ack.Flags&(wire.SYN|wire.ACK|wire.RST) != wire.ACK {
		return nil
	}
	peerMSS, ok := k.checkCookie(id, ack.Seq-1, ack.Ack-1, minute)
	if !ok {
		return nil
	}
	syn := Segment{TCP: wire.TCP{Seq: ack.Seq - 1, Window: ack.Window, Flags: wire.SYN}}
	syn.MSS = peerMSS
	offset := k.TimestampOffset(id)
	if ack.HasTimestamps {
		options := (ack.TSEcr - offset) & cookieOptions
		syn.HasTimestamps, syn.TSVal = true, ack.TSVal
		syn.SACKPermitted = options&cookieSACK != 0
		if scale := options & cookieNoScale; scale != cookieNoScale {
			syn.HasWindowScale, syn.WindowScale = true, uint8(scale)
		}
		if options&cookieECN != 0 {
			syn.Flags |= wire.ECE | wire.CWR
		}
	}
	c := Accept(now, cfg, id, ack.Ack-1, offset, mss, &syn, out, in)
	c.snd.una++
	c.snd.nxt = c.snd.una
	c.rcv.edge = c.rcv.nxt.Add(c.rcv.firstWindow())
	c.establish(now)
	return c
}
