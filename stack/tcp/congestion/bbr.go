package congestion

// BBR, version 3, by draft-ietf-ccwg-bbr (the working group's text of August 2026, whose section numbers are
// used here). BBR measures the path instead of filling it until it overflows: its delivery rate (bbrmodel.go)
// and its round trip time. It sends at the measured rate and keeps in flight what that rate requires
// (bbrcontrol.go). From time to time it sends more, to find unused bandwidth, or less, to measure the round
// trip time without a queue (bbrstate.go, bbrprobertt.go). Loss limits both rate and volume, depending on its
// share of a round trip's data (bbrloss.go).
//
//	Startup     doubles the rate each round trip, until the path delivers no more
//	Drain       drains the queue that Startup has built
//	ProbeDown   sends less than the path delivers, to leave room for other flows
//	ProbeCruise sends what the path delivers
//	ProbeRefill fills the path again, before ProbeUp
//	ProbeUp     sends more than the path is known to deliver
//	ProbeRTT    halves the data in flight, at most every five seconds
//
// Names are the draft's, without its prefixes. Volumes are in bytes, rates in bytes per second, gains
// in percent. All arithmetic is on integers, so that every machine gets the same result.
//
// Choices where the draft is open or contradicts itself, and one deviation:
//
//   - Between probes, the draft lowers the rate to the delivered rate after any loss in a round trip
//     (section 5.5.10.3). At random loss of 1 % and a pacing margin of 1 %, the rate falls by a fiftieth
//     each round trip for up to 63 round trips; at 3 %, no probe ever succeeds. Linux's BBR version 1
//     ignores loss in both cases. So does NewBBR up to DefaultLossThresh. BBR(DraftLossThresh) does not.
//   - ECN: section 3.6 only requires that marks count as congestion. A round trip with an echoed mark is
//     treated as a round trip with loss above the threshold (Marked).
//   - TargetInflight in IsRenoCoexistenceProbeTime counts segments, as Reno's rounds do.
//   - The windowed maxima have two slots, each half of the window long, which section 2.10 permits for
//     max_bw.

// bbrState is the phase that BBR is in (BBR.state of the draft).
type bbrState uint8

const (
	bbrStartup bbrState = iota
	bbrDrain
	bbrProbeDown
	bbrProbeCruise
	bbrProbeRefill
	bbrProbeUp
	bbrProbeRTT
)

// acksPhase is BBR.ack_phase (section 2.13 of the BBR draft): the part of the last probe that the arriving acknowledgments
// belong to.
type acksPhase uint8

const (
	acksInit acksPhase = iota
	acksRefilling
	acksProbeStarting
	acksProbeFeedback
	acksProbeStopping
)

// bbrGains holds the gains of each state in percent (section 5.6.1 of the BBR draft).
var bbrGains = [...]struct{ pacing, cwnd uint64 }{
	bbrStartup:     {277, 200},
	bbrDrain:       {50, 200},
	bbrProbeDown:   {90, 200},
	bbrProbeCruise: {100, 200},
	bbrProbeRefill: {100, 200},
	bbrProbeUp:     {125, 225},
	bbrProbeRTT:    {100, 50},
}

// Design parameters (sections 2.5 to 2.7 and 2.15 of the BBR draft).
const (
	bbrBeta         = 70 // Beta in percent: the factor by which loss lowers the short-term model
	bbrHeadroom     = 15 // Headroom in percent: the part of the path that is left to other flows
	bbrPacingMargin = 1  // PacingMargin in percent: the rate is lower than the bandwidth by this
	bbrMinPipe      = 4  // MinPipeCwnd in segments
	bbrFullLosses   = 6  // number of lost ranges in a round trip that ends Startup (section 5.3.1.3 of the BBR draft)

	bbrMinRTTLen        = 10e9  // MinRTTFilterLen in nanoseconds
	bbrProbeRTTInterval = 5e9   // ProbeRTTInterval in nanoseconds
	bbrProbeRTTTime     = 200e6 // ProbeRTTDuration in nanoseconds

	bbrAckedLen = 10 // ExtraAckedFilterLen in round trips
)

// DraftLossThresh is the loss that the draft tolerates in a probe for bandwidth (the default of its
// LossThresh). DefaultLossThresh is the value of NewBBR. Both are in percent of the data in flight. See BBR.
const (
	DraftLossThresh   = 2
	DefaultLossThresh = 10
)

// bbrGrace is the number of lost segments that are tolerated in addition to LossThresh, if LossThresh exceeds the draft's
// value. With few segments in flight, one or two lost segments are already more than 10 %.
const bbrGrace = 3

// bbrNone is the value of a volume or rate that is not limited.
const bbrNone = 1<<63 - 1

// bbr is the state of one connection, with the names of the draft.
type bbr struct {
	lossThresh  uint64 // LossThresh in percent of the data in flight
	grace       uint64 // number of bytes that may be lost in addition: bbrGrace segments, or 0 with the draft's threshold
	state       bbrState
	ackPhase    acksPhase
	random      uint32
	initialCwnd uint64
	bw          uint64 // bandwidth: the sending rate before the pacing gain is applied
	priorCwnd   uint64
	recovering  bool // BBR.InLossRecovery: a recovery is in progress

	// Round trips, counted by delivered data (section 5.5.1 of the BBR draft).
	roundCount         uint32
	roundStart         bool
	nextRoundDelivered uint64

	// The model of the path: the long-term part, and the short-term part that loss lowers (section 3.4.2 of the BBR draft).
	maxBw             maxFilter // each slot is one cycle of ProbeBW
	bwShortterm       uint64
	inflightLongterm  uint64
	inflightShortterm uint64
	bwLatest          uint64
	inflightLatest    uint64

	// Loss in the current round trip (section 5.5.10 of the BBR draft).
	lossInRound    bool
	lossRoundStart bool
	lossRoundDone  uint64 // BBR.loss_round_delivered: the round trip ends when data arrives that was sent at or after this value of C.delivered
	lossRanges     int    // discontiguous ranges lost in this round trip
	lossEnd        Seq    // sequence number at the end of the last lost range

	// Measurement of the minimum round trip time (section 5.3.4.3 of the BBR draft).
	minRTT          Time // bbrNone: not measured yet
	minRTTAt        Time
	probeRTTDelay   Time
	probeRTTDelayAt Time
	probeRTTExpired bool
	probeRTTDone    Time // time at which ProbeRTT ends; 0: the data in flight is not yet low enough
	probeRTTRound   bool // a round trip has passed since the data in flight was low enough
	idleRestart     bool

	// Aggregation of acknowledgments (section 5.5.9 of the BBR draft).
	extraAcked     maxFilter
	extraSlotRound uint32 // round trip in which the current slot of extraAcked began
	extraDelivered uint64
	extraStart     Time

	// Detection that the path is full (section 5.3.1.2 of the BBR draft).
	fullBwReached, fullBwNow bool
	fullBw                   uint64
	fullBwCount              int
	drainStartRound          uint32

	// Probing for bandwidth (section 5.3.3 of the BBR draft).
	cycleStamp         Time
	probeWait          Time
	roundsSinceProbeUp uint32
	probeUpRounds      uint
	probeUpAcked       uint64
	probeUpAckedPerInc uint64
	probeSample        bool // BBR.is_bw_probe_sample of the draft
	probeTooHigh       bool // BBR.prev_probe_too_high of the draft
	probePrecautionary bool // BBR.prev_probe_precautionary of the draft

	undo bbrUndo
}

// NewBBR returns the congestion control of draft-ietf-ccwg-bbr with DefaultLossThresh.
func NewBBR() Control { return &bbr{lossThresh: DefaultLossThresh} }

// BBR returns a constructor of BBR that treats loss above lossThresh percent as congestion. The minimum is
// DraftLossThresh, which follows the draft exactly. With a higher value, random loss up to it costs no
// bandwidth in a probe. Between probes the tolerated loss is lower by the draft's two percent.
func BBR(lossThresh int) func() Control {
	return func() Control { return &bbr{lossThresh: uint64(max(lossThresh, DraftLossThresh))} }
}

// Name implements Control.
func (b *bbr) Name() string { return "bbr" }

// Start implements section 5.2.1 (OnInit) of the BBR draft.
func (b *bbr) Start(w *Window, now, srtt Time, seed uint32) {
	*b = bbr{
		lossThresh: b.lossThresh, random: seed | 1, initialCwnd: uint64(w.Size), minRTT: bbrNone, minRTTAt: now,
		probeRTTDelay: bbrNone, probeRTTDelayAt: now, extraStart: now,
		inflightLongterm: bbrNone, probeUpAckedPerInc: bbrNone,
	}
	if b.lossThresh > DraftLossThresh {
		b.grace = bbrGrace * uint64(w.MSS)
	}
	if srtt > 0 {
		b.minRTT, b.probeRTTDelay = srtt, srtt
	}
	b.resetCongestionSignals()
	b.resetShortTermModel()
	b.initPacingRate(w, srtt)
}

// Acked implements section 5.2.3 (UpdateOnACK) of the BBR draft.
func (b *bbr) Acked(w *Window, a Ack) {
	s := a.Sample
	b.updateLatestDeliverySignals(s)
	b.updateCongestionSignals(w, s)
	b.updateACKAggregation(w, a.Now, s)
	b.checkFullBwReached(s)
	b.checkStartupDone(w, s)
	b.checkDrainDone(w, a.Now, s)
	b.updateProbeBwCyclePhase(w, a.Now, s)
	b.updateMinRTT(a.Now, s)
	b.checkProbeRTT(w, a.Now, s)
	b.advanceLatestDeliverySignals(s)
	b.boundBwForModel()

	b.setPacingRate(w)
	b.setCwnd(w, s)
}

// between returns a random number from 0 to n.
func (b *bbr) between(n uint64) uint64 {
	b.random ^= b.random << 13
	b.random ^= b.random >> 17
	b.random ^= b.random << 5
	return uint64(b.random) % (n + 1)
}

// percent returns p percent of n, which may be bbrNone.
func percent(n, p uint64) uint64 {
	if n >= bbrNone/1000 {
		return n / 100 * p
	}
	return n * p / 100
}

// BBRInfo holds the fields of Linux's struct tcp_bbr_info. It is zero for other congestion controls.
type BBRInfo struct {
	Bandwidth  uint64 // bandwidth in bytes per second
	MinRTT     Time
	PacingGain int // pacing gain in percent
	WindowGain int // gain of the congestion window in percent
}

// Info returns the state for programs.
func (b *bbr) Info() BBRInfo {
	g := bbrGains[b.state]
	i := BBRInfo{Bandwidth: b.bw, PacingGain: int(g.pacing), WindowGain: int(g.cwnd)}
	if b.minRTT != bbrNone {
		i.MinRTT = b.minRTT
	}
	return i
}

// Path is the model of a path that BBR has built, for tests and for debugging. Rates are in bytes per second, volumes in bytes.
type Path struct {
	Phase      string // "Startup", "Drain", "ProbeDown", "ProbeCruise", "ProbeRefill", "ProbeUp" or "ProbeRTT"
	Full       bool   // the path has been full once
	FullRounds int    // number of round trips without a higher rate
	Bandwidth  uint64 // sending rate before the pacing gain is applied
	Most       uint64 // highest measured delivery rate
	Short      uint64 // upper bound of the rate since the last probe (short-term model)
	Bounded    bool   // loss has limited the volume in flight
	Volume     uint64 // volume in flight that causes no queue
	MinRTT     Time
}

// phases are the names of the states.
var phases = [...]string{
	bbrStartup: "Startup", bbrDrain: "Drain", bbrProbeDown: "ProbeDown", bbrProbeCruise: "ProbeCruise",
	bbrProbeRefill: "ProbeRefill", bbrProbeUp: "ProbeUp", bbrProbeRTT: "ProbeRTT",
}

// Path returns the model of the path of a connection with a window.
func (b *bbr) Path(w *Window) Path {
	return Path{
		Phase: phases[b.state], Full: b.fullBwReached, FullRounds: b.fullBwCount, Bandwidth: b.bw, Most: b.maxBw.max(),
		Short: b.bwShortterm, Bounded: b.inflightLongterm != bbrNone, Volume: b.inflight(w, b.bw, 100), MinRTT: b.minRTT,
	}
}
