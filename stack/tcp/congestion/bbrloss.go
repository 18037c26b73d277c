package congestion

// BBR: loss, ECN, and undoing the response to spurious loss (draft-ietf-ccwg-bbr sections 5.3.1.3, 5.5.10,
// 5.5.11 and 5.6.4.4).

// bbrUndo holds the values to restore if a recovery was spurious (section 2.14 of the BBR draft).
type bbrUndo struct {
	state                               bbrState
	moved                               bool // the field state is valid: a loss has ended that state, which is Startup or ProbeUp
	bwShortterm                         uint64
	inflightShortterm, inflightLongterm uint64
}

// inflightTooHigh implements IsInflightTooHigh of the BBR draft: more than the threshold of the data in flight was
// lost.
func (b *bbr) inflightTooHigh(lost uint64, inFlight uint32, sack bool) bool {
	return lost > uint64(inFlight)*b.lossThresh/100+b.grace || lost > 0 && !sack
}

// lossTolerated reports whether the loss of a sample is ignored between probes: up to the excess of
// LossThresh over the draft's value.
func (b *bbr) lossTolerated(s *Sample) bool {
	return s.SACK && b.grace > 0 && s.Lost <= uint64(s.InFlight)*(b.lossThresh-DraftLossThresh)/100+b.grace
}

// noteLoss implements NoteLoss of the BBR draft: it begins a round trip with loss, if there was none before.
func (b *bbr) noteLoss(w *Window, delivered uint64) {
	if !b.lossInRound {
		b.lossRoundDone = delivered
		b.saveStateUponLoss(w)
	}
	b.lossInRound = true
}

// Lost implements HandleLostPacket (section 5.5.10.2 of the BBR draft).
func (b *bbr) Lost(w *Window, l *Loss) {
	b.noteLoss(w, l.Total)
	if b.lossRanges == 0 || l.Seq != b.lossEnd {
		b.lossRanges++
	}
	b.lossEnd = l.End
	if !b.probeSample || !b.inflightTooHigh(l.Lost, l.InFlight, l.SACK) {
		return
	}
	b.handleInflightTooHigh(w, l.Now, b.inflightAtLoss(l), l.Limited, l.Total)
}

// inflightAtLoss implements InflightAtLoss of the BBR draft. It returns the data in flight when the loss crossed the
// threshold, which may be in the middle of a range.
func (b *bbr) inflightAtLoss(l *Loss) uint64 {
	size := uint64(l.End - l.Seq)
	inflight := uint64(l.InFlight) - min(size, uint64(l.InFlight))
	lost := l.Lost - min(size, l.Lost)
	prefix := uint64(0)
	if most := inflight * b.lossThresh; most > lost*100 {
		prefix = (most - lost*100) / (100 - b.lossThresh)
	}
	return inflight + prefix
}

// handleInflightTooHigh implements HandleInflightTooHigh of the BBR draft. It reacts once per probe.
func (b *bbr) handleInflightTooHigh(w *Window, now Time, inFlight uint64, limited bool, delivered uint64) {
	b.probeTooHigh = true
	b.probeSample = false
	if !limited {
		b.inflightLongterm = max(inFlight, percent(b.targetInflight(w), bbrBeta))
	}
	if b.state == bbrProbeUp {
		b.undo.state, b.undo.moved = bbrProbeUp, true
		b.startProbeDown(now, delivered)
	}
}

// checkStartupHighLoss implements CheckStartupHighLoss (section 5.3.1.3 of the BBR draft).
func (b *bbr) checkStartupHighLoss(s *Sample) {
	if b.state != bbrStartup || b.fullBwReached || !s.Any || !b.recovering {
		return
	}
	if s.SACK && !(b.lossRoundStart && b.lossRanges >= bbrFullLosses && b.inflightTooHigh(s.Lost, s.InFlight, true)) {
		return
	}
	b.leaveStartup()
}

// leaveStartup ends Startup because of loss, with the delivered volume as the limit.
func (b *bbr) leaveStartup() {
	b.undo.state, b.undo.moved = bbrStartup, true
	b.fullBwReached, b.fullBwNow = true, true
	b.inflightLongterm = max(b.bdpMultiple(b.bw, 100), b.inflightLatest)
}

// Marked treats an ECN mark as loss above the threshold (section 3.6 of the BBR draft; see bbr.go).
func (b *bbr) Marked(w *Window, now Time) {
	b.noteLoss(w, b.lossRoundDone)
	switch {
	case b.state == bbrStartup && !b.fullBwReached:
		b.leaveStartup()
	case b.probeSample:
		b.handleInflightTooHigh(w, now, percent(uint64(w.Size), bbrBeta), false, b.nextRoundDelivered)
	}
}

// Reduce implements OnEnterFastRecovery and the part of OnEnterRTO that is the same (section 5.6.4.4 of the BBR draft). At a
// timeout, the Conn leaves room for one segment. A Model has no threshold.
func (b *bbr) Reduce(w *Window, now Time, flight uint32) uint32 {
	b.saveCwnd(w)
	if !b.lossInRound && !b.undo.moved { // otherwise Lost has already saved the state
		b.saveStateUponLoss(w)
	}
	b.recovering = true
	return w.Threshold
}

// Timeout implements Control. Reduce does all the work.
func (b *bbr) Timeout(w *Window, now Time) {}

// Recovered implements Model: it ends the recovery and restores the window.
func (b *bbr) Recovered(w *Window, now Time) {
	b.recovering = false
	b.restoreCwnd(w)
}

// saveStateUponLoss implements SaveStateUponLoss (section 5.5.11.1 of the BBR draft).
func (b *bbr) saveStateUponLoss(w *Window) {
	b.saveCwnd(w)
	b.undo = bbrUndo{
		bwShortterm: b.bwShortterm, inflightShortterm: b.inflightShortterm, inflightLongterm: b.inflightLongterm,
	}
}

// Undo implements HandleSpuriousLossDetection (section 5.5.11.2 of the BBR draft).
func (b *bbr) Undo(w *Window, now Time) {
	b.recovering = false
	b.restoreCwnd(w)
	b.lossInRound = false
	b.resetFullBw()
	b.bwShortterm = max(b.bwShortterm, b.undo.bwShortterm)
	b.inflightShortterm = max(b.inflightShortterm, b.undo.inflightShortterm)
	b.inflightLongterm = max(b.inflightLongterm, b.undo.inflightLongterm)
	if !b.undo.moved || b.state == b.undo.state {
		return
	}
	b.undo.moved = false
	if b.undo.state == bbrStartup {
		b.fullBwReached = false
	}
	switch {
	case b.state == bbrProbeRTT:
	case b.undo.state == bbrStartup:
		b.enter(bbrStartup)
	default:
		b.startProbeRefill(b.nextRoundDelivered)
	}
}
