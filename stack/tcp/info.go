package tcp

import "loam/stack/tcp/congestion"

// Info is a snapshot of a connection, with the fields of Linux's TCP_INFO that apply here. Counts are in
// segments unless the name or comment says bytes.
type Info struct {
	State        State
	CAState      CAState
	Congestion   string // name of the algorithm
	Retransmits  int    // consecutive timeouts
	Probes       int    // unanswered probes of a closed window or an idle peer
	Backoff      int    // doublings of the timeout
	Timestamps   bool
	SACK         bool
	ECN          bool
	WindowScaled bool
	SndWScale    uint8 // shift of the peer's window field
	RcvWScale    uint8 // shift of our window field
	AppLimited   bool  // the congestion window was not fully used lately

	RTO     Time
	ATO     Time // acknowledgment delay
	RTT     Time // smoothed; 0 if not measured yet
	RTTVar  Time
	MinRTT  Time // minimum of the last minutes; 0 if not measured yet
	RcvRTT  Time // measured by the receiver; 0 if not measured
	SndMSS  int  // payload of a full segment sent
	RcvMSS  int  // largest payload received
	AdvMSS  int  // MSS announced to the peer
	PathMSS int  // payload that the path allows

	LastDataSent Time // time since data was last sent, or since the connection was opened
	LastDataRecv Time // time since data was last received, in the same unit
	LastAckRecv  Time // time since any segment was last received, in the same unit

	Unacked int // in flight
	Sacked  int // in flight and acknowledged selectively or by duplicates
	Lost    int // in flight and taken for lost
	Retrans int // in flight and retransmitted

	SndCwnd       int // congestion window
	SndCwndBytes  int
	SndSsthresh   int    // slow start threshold; MaxInt32 before the first reduction
	PacingRate    uint64 // bytes per second; 0: not paced
	MaxPacingRate uint64 // SetMaxPacingRate; 0: no bound
	DeliveryRate  uint64 // last sample in bytes per second; 0: not measured (only a Model measures it)
	RateLimited   bool   // that sample was limited by the program
	BBR           BBRInfo
	SndWnd        int // bytes offered by the peer
	RcvWnd        int // bytes offered to the peer
	RcvSpace      int // bytes that the program may leave unread
	NotSent       int // bytes written but not yet sent
	Reordering    int // degree of reordering seen, in segments, at least 3
	ReorderSeen   int // number of times reordering was seen
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
	DeliveredCE     uint32 // delivered segments acknowledged with ECE
	DSACKDups       uint32 // duplicates reported by the peer
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

// Info returns a snapshot of the connection.
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
		LastAckRecv:  now - c.keep.received,

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
	c.infoRates(&i)
	c.infoBytes(&i)
	c.infoSegments(&i)
	if c.window.Threshold != congestion.NoThreshold {
		i.SndSsthresh = int(c.window.Threshold) / mss
	}
	if c.cc != nil {
		i.Congestion = c.cc.Name()
	}
	return i
}

// pathMSS returns the payload that the path allows, as far as known or suspected.
func (c *Conn) pathMSS() int {
	if c.snd.holeMSS != 0 {
		return int(min(c.snd.pathMSS, c.snd.holeMSS))
	}
	return int(c.snd.pathMSS)
}

// infoRates fills in the rates.
func (c *Conn) infoRates(i *Info) {
	i.PacingRate = c.pacingRate()
	if c.pace != nil {
		i.MaxPacingRate = c.pace.most
	}
	if c.rate != nil {
		i.DeliveryRate, i.RateLimited = c.rate.rate, c.rate.rateLimited
	}
	if b, ok := c.cc.(interface{ Info() BBRInfo }); ok {
		i.BBR = b.Info()
	}
}

// infoBytes fills in the byte counts of the two streams.
func (c *Conn) infoBytes(i *Info) {
	i.BytesReceived = c.rcv.off
	i.BytesRetrans = c.stats.bytesRetrans
	i.BytesSent = i.BytesRetrans
	if c.snd.una != c.snd.iss {
		i.BytesAcked = min(c.snd.off, c.snd.end)
		i.BytesSent += min(c.offset(c.snd.nxt), c.snd.end)
	}
}

// infoSegments fills in the counts of segments in flight.
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
