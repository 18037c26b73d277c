package congestion

// BBR: the model of the path, built from acknowledgments (draft-ietf-ccwg-bbr section 5.5).

// maxFilter is a maximum over the current and the previous slot.
type maxFilter struct{ now, before uint64 }

// take adds a value to the maximum of the current slot.
func (f *maxFilter) take(v uint64) { f.now = max(f.now, v) }

// advance begins a new slot. If the current slot is empty, nothing changes and the previous maximum stays.
func (f *maxFilter) advance() {
	if f.now > 0 {
		f.now, f.before = 0, f.now
	}
}

func (f *maxFilter) max() uint64 { return max(f.now, f.before) }

// updateRound implements UpdateRound (section 5.5.1 of the BBR draft).
func (b *bbr) updateRound(s *Sample) {
	b.roundStart = s.Any && s.Prior >= b.nextRoundDelivered
	if b.roundStart {
		b.startRound(s.Total)
		b.roundCount++
		b.roundsSinceProbeUp++
	}
}

func (b *bbr) startRound(delivered uint64) { b.nextRoundDelivered = delivered }

// updateMaxBw implements UpdateMaxBw (section 5.5.5 of the BBR draft).
func (b *bbr) updateMaxBw(s *Sample) {
	b.updateRound(s)
	if s.Rate > 0 && (s.Rate >= b.maxBw.max() || !s.Limited) {
		b.maxBw.take(s.Rate)
	}
}

// updateLatestDeliverySignals begins the processing of an acknowledgment (section 5.5.10.3 of the BBR draft).
func (b *bbr) updateLatestDeliverySignals(s *Sample) {
	b.lossRoundStart = false
	if !s.Any {
		return
	}
	b.bwLatest = max(b.bwLatest, s.Rate)
	b.inflightLatest = max(b.inflightLatest, s.Delivered)
	if s.Prior >= b.lossRoundDone {
		b.lossRoundDone = s.Total
		b.lossRoundStart = true
	}
}

// advanceLatestDeliverySignals ends the processing of an acknowledgment.
func (b *bbr) advanceLatestDeliverySignals(s *Sample) {
	if b.lossRoundStart {
		b.bwLatest, b.inflightLatest = s.Rate, s.Delivered
		b.lossRanges = 0
	}
}

// resetCongestionSignals implements ResetCongestionSignals of the BBR draft, at the start of each round trip.
func (b *bbr) resetCongestionSignals() {
	b.lossInRound = false
	b.bwLatest, b.inflightLatest = 0, 0
}

// updateCongestionSignals implements UpdateCongestionSignals of the BBR draft.
func (b *bbr) updateCongestionSignals(w *Window, s *Sample) {
	b.updateMaxBw(s)
	if !b.lossRoundStart {
		return
	}
	if b.lossInRound && !b.probingBw() && !b.lossTolerated(s) {
		b.adaptLowerBounds(w)
	}
	b.lossInRound = false
}

// adaptLowerBounds implements InitLowerBounds and LossLowerBounds. Once per round trip with loss, outside of
// probes, it lowers the short-term model to the delivered amount, but not below Beta times the old value.
func (b *bbr) adaptLowerBounds(w *Window) {
	if b.bwShortterm == bbrNone {
		b.bwShortterm = b.maxBw.max()
	}
	if b.inflightShortterm == bbrNone {
		b.inflightShortterm = uint64(w.Size)
	}
	b.bwShortterm = max(b.bwLatest, percent(b.bwShortterm, bbrBeta))
	b.inflightShortterm = max(b.inflightLatest, percent(b.inflightShortterm, bbrBeta))
}

// resetShortTermModel implements ResetShortTermModel of the BBR draft.
func (b *bbr) resetShortTermModel() { b.bwShortterm, b.inflightShortterm = bbrNone, bbrNone }

// boundBwForModel implements BoundBWForModel of the BBR draft: the bandwidth is the minimum of the two models.
func (b *bbr) boundBwForModel() { b.bw = min(b.maxBw.max(), b.bwShortterm) }

// updateACKAggregation implements UpdateACKAggregation (section 5.5.9 of the BBR draft). Acknowledgments beyond the expected
// rate show how much data the path or the peer holds back and then acknowledges at once.
func (b *bbr) updateACKAggregation(w *Window, now Time, s *Sample) {
	if !s.Any {
		return
	}
	expected := BytesIn(b.bw, now-b.extraStart)
	if b.extraDelivered <= expected {
		b.extraDelivered, b.extraStart, expected = 0, now, 0
	}
	b.extraDelivered += uint64(s.Acked)
	slot := uint32(1)
	if b.fullBwReached {
		slot = bbrAckedLen / 2
	}
	if b.roundCount-b.extraSlotRound >= slot {
		b.extraSlotRound = b.roundCount
		b.extraAcked.now, b.extraAcked.before = 0, b.extraAcked.now
		if !b.fullBwReached {
			b.extraAcked.before = 0
		}
	}
	b.extraAcked.take(min(b.extraDelivered-expected, uint64(w.Size)))
}

// checkFullBwReached implements CheckFullBWReached (section 5.3.1.2 of the BBR draft): the path is full if the rate has not
// grown by a quarter in three round trips. Every sample can show such growth, as in the draft up to version
// 01. In the later text only the first sample of a round trip counts, which is often missing under loss.
func (b *bbr) checkFullBwReached(s *Sample) {
	switch {
	case b.fullBwNow || s.Limited || !s.Any:
		return
	case s.Rate > 0 && s.Rate >= percent(b.fullBw, 125):
		b.resetFullBw()
		b.fullBw = s.Rate
		return
	case !b.roundStart:
		return
	}
	b.fullBwCount++
	if b.fullBwCount >= 3 {
		b.fullBwNow, b.fullBwReached = true, true
	}
}

func (b *bbr) resetFullBw() { b.fullBw, b.fullBwCount, b.fullBwNow = 0, 0, false }
