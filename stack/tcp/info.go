package tcp

// Info is what Linux's TCP_INFO says, as far as it means something here. Counts
// are of segments unless they say bytes.
type Info struct {
	State        State
	CAState      CAState
	Congestion   string // the algorithm
	Retransmits  int    // timeouts in a row
	Probes       int    // probes of a closed window or an idle peer without an answer
	Backoff      int    // doublings of the timeout
	Timestamps   bool
	SACK         bool
	ECN          bool
	WindowScaled bool
	SndWScale    uint8 // of the peer's window
	RcvWScale    uint8 // of ours
	AppLimited   bool  // the congestion window was not all used lately

	RTO     Time
	ATO     Time // delay of acknowledgments
	RTT     Time // smoothed; 0 if not measured yet
	RTTVar  Time
	MinRTT  Time // least of the last minutes; 0 if not measured yet
	RcvRTT  Time // as the receiver sees it; 0 if not measured
	SndMSS  int  // payload of a full segment sent
	RcvMSS  int  // largest payload received
	AdvMSS  int  // MSS told to the peer
	PathMSS int  // payload that the path allows

	LastDataSent Time // since data was sent last, or the connection began
	LastDataRecv Time // since data was received last, likewise
	LastAckRecv  Time // since anything was received last, likewise

	Unacked int // in flight
	Sacked  int // of them, acknowledged selectively or by duplicates
	Lost    int // of them, taken for lost
	Retrans int // of them, sent again

	SndCwnd       int // congestion window
	SndCwndBytes  int
	SndSsthresh   int // slow start threshold; MaxInt32 before the first reduction
	SndWnd        int // bytes that the peer offers
	RcvWnd        int // bytes offered to the peer
	RcvSpace      int // bytes that the program may leave unread
	NotSent       int // bytes written and not sent yet
	Reordering    int // degree of reordering seen, at least 3
	ReorderSeen   int // times that reordering was seen
	BytesSent     uint64
	BytesRetrans  uint64
	BytesAcked    uint64
	BytesReceived uint64

	TotalRetrans    uint32
	SegmentsOut     uint32
	SegmentsIn      uint32
	DataSegmentsOut uint32
	DataSegmentsIn  uint32
	Delivered       uint32
	DeliveredCE     uint32 // of them, acknowledged with ECE
	DSACKDups       uint32 // reported by the peer as duplicates
	OutOfOrder      uint32 // received behind a gap
}

// CAState is the state of congestion control, with Linux's values.
type CAState uint8

// The states.
const (
	CAOpen     CAState = iota // nothing unusual
	CADisorder                // selective or duplicate acknowledgments have come
	CACWR                     // slowing down because of ECN
	CARecovery                // repairing loss by fast retransmit
	CALoss                    // repairing loss after a timeout
)

// Info describes the connection.
func (c *Conn) Info(now Time) Info {
	mss := int(c.window.MSS)
	i := Info{
		State:        c.state,
		CAState:      c.rec.state,
		Retransmits:  int(c.snd.retries),
		Probes:       int(max(c.snd.probes, c.keep.probes)),
		Backoff:      int(c.rtt.backoff),
		Timestamps:   c.ts.on,
		SACK:         c.rcv.sackOK,
		ECN:          c.ecn.on,
		WindowScaled: c.rcv.scaled,
		SndWScale:    c.snd.scale,
		RcvWScale:    c.rcv.scale,
		AppLimited:   !c.snd.limited,

		RTO:     c.rto(),
		ATO:     c.cfg.delayedAck(),
		RTT:     c.rtt.srtt,
		RTTVar:  c.rtt.rttvar,
		MinRTT:  c.rtt.min,
		RcvRTT:  c.rcv.tune.rtt,
		SndMSS:  mss,
		RcvMSS:  int(c.rcv.mss),
		AdvMSS:  int(c.snd.advMSS),
		PathMSS: c.pathMSS(),

		LastDataSent: now - c.snd.lastSent,
		LastDataRecv: c.ack.last.since(now),
		LastAckRecv:  now - c.keep.heard,

		SndCwnd:      int(c.window.Size) / mss,
		SndCwndBytes: int(c.window.Size),
		SndSsthresh:  1<<31 - 1,
		SndWnd:       int(c.snd.wnd),
		RcvWnd:       max(0, c.rcv.edge.Sub(c.rcv.nxt)),
		RcvSpace:     int(c.rcv.size),
		NotSent:      c.unsent(),
		Reordering:   max(dupThresh, int(c.rack.degree)),
		ReorderSeen:  int(c.stats.reordered),

		TotalRetrans:    c.stats.retransmits,
		SegmentsOut:     c.stats.segsOut,
		SegmentsIn:      c.stats.segsIn,
		DataSegmentsOut: c.stats.dataOut,
		DataSegmentsIn:  c.stats.dataIn,
		Delivered:       c.stats.delivered,
		DeliveredCE:     c.stats.deliveredCE,
		DSACKDups:       c.stats.dsacks,
		OutOfOrder:      c.stats.outOfOrder,
	}
	c.infoBytes(&i)
	c.infoSegments(&i)
	if c.window.Threshold != noThreshold {
		i.SndSsthresh = int(c.window.Threshold) / mss
	}
	if c.cc != nil {
		i.Congestion = c.cc.Name()
	}
	return i
}

// pathMSS is the payload that the path allows, as far as is known or suspected.
func (c *Conn) pathMSS() int {
	if c.snd.holeMSS != 0 {
		return int(min(c.snd.pathMSS, c.snd.holeMSS))
	}
	return int(c.snd.pathMSS)
}

// infoBytes fills in the sums of the two streams.
func (c *Conn) infoBytes(i *Info) {
	i.BytesReceived = c.rcv.off
	i.BytesRetrans = c.stats.bytesRetrans
	i.BytesSent = i.BytesRetrans
	if c.snd.una != c.snd.iss {
		i.BytesAcked = min(c.snd.off, c.snd.end)
		i.BytesSent += min(c.offset(c.snd.nxt), c.snd.end)
	}
}

// infoSegments counts what is in flight.
func (c *Conn) infoSegments(i *Info) {
	for j := range c.sent.len() {
		r := c.sent.at(j)
		n := int(r.segs)
		i.Unacked += n
		if r.flags&sentSacked != 0 {
			i.Sacked += n
		}
		if r.flags&sentLost != 0 {
			i.Lost += n
		}
		if r.flags&sentRetrans != 0 {
			i.Retrans += n
		}
	}
	if !c.rcv.sackOK {
		i.Sacked = int(c.rec.dups)
	}
	if i.CAState == CAOpen && i.Sacked > 0 {
		i.CAState = CADisorder
	}
}
