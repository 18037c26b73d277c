package tcp

import "loam/stack/tcp/congestion"

// Info is a snapshot of a connection, with the fields of Linux's TCP_INFO that apply here. Counts are in
// segments unless the name or comment says bytes.
type Info struct {
	State        State
	CAState      CAState
	Congestion   string // name of the congestion control
	Retransmits  int    // number of consecutive timeouts
	Probes       int    // number of unanswered probes of a closed window or an idle peer
	Backoff      int    // number of times the timeout has been doubled
	Timestamps   bool
	SACK         bool
	ECN          bool
	WindowScaled bool
	SynData      bool  // data of a SYN was acknowledged (RFC 7413)
	SndWScale    uint8 // shift of the peer's window field
	RcvWScale    uint8 // shift of our window field
	AppLimited   bool  // the congestion window was not fully used recently

	RTO     Time
	ATO     Time // timeout of delayed acknowledgments
	RTT     Time // smoothed round trip time; 0 if not measured yet
	RTTVar  Time
	MinRTT  Time // minimum round trip time of the last minutes; 0 if not measured yet
	RcvRTT  Time // round trip time as measured by the receiver; 0 if not measured
	SndMSS  int  // payload of a full segment that is sent, in bytes
	RcvMSS  int  // largest payload of a segment that was received, in bytes
	AdvMSS  int  // MSS announced to the peer
	PathMSS int  // payload in bytes that the path allows

	LastDataSent Time // time since data was last sent, or since the connection was opened
	LastDataRecv Time // time since data was last received, or since the connection was opened
	LastAckRecv  Time // time since any segment was last received, or since the connection was opened

	Unacked int // segments in flight
	Sacked  int // segments in flight that were acknowledged selectively or by duplicates
	Lost    int // segments in flight that are considered lost
	Retrans int // segments in flight that were retransmitted

	SndCwnd       int // congestion window in segments
	SndCwndBytes  int
	SndSsthresh   int    // slow start threshold in segments; MaxInt32 before the first reduction
	PacingRate    uint64 // pacing rate in bytes per second; 0: data is not paced
	MaxPacingRate uint64 // limit set by SetMaxPacingRate in bytes per second; 0: no limit
	DeliveryRate  uint64 // last sample of the delivery rate in bytes per second; 0: not measured (only a Model measures it)
	RateLimited   bool   // the last sample was limited because the program had nothing to send
	BBR           BBRInfo
	SndWnd        int // window that the peer offers, in bytes
	RcvWnd        int // window that is offered to the peer, in bytes
	RcvSpace      int // number of bytes that the program may leave unread
	NotSent       int // number of bytes written but not yet sent
	Reordering    int // observed degree of reordering in segments, at least 3
	ReorderSeen   int // number of times reordering was observed
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
	DeliveredCE     uint32 // delivered segments that were acknowledged with ECE
	DSACKDups       uint32 // duplicates that the peer has reported (D-SACK)
	OutOfOrder      uint32 // segments received after a gap
}

// CAState is the state of congestion control, with Linux's values.
type CAState uint8

// Values of CAState.
const (
	CAOpen     CAState = iota // no loss, reordering or congestion is known
	CADisorder                // selective or duplicate acknowledgments have arrived
	CACWR                     // the window is being reduced because of ECN
	CARecovery                // loss is being repaired by fast retransmit
	CALoss                    // loss is being repaired after a timeout
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
		SynData:      c.FastOpen().SynData,
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
	if c.search != nil {
		return int(min(c.snd.pathMSS, c.snd.mss))
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
