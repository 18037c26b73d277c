package congestion

// BBR: the pacing rate and the congestion window derived from the model (draft-ietf-ccwg-bbr section 5.6).
// The quantum is Window.quantum.

import "time"

// initPacingRate implements InitPacingRate (section 5.6.2 of the BBR draft).
func (b *bbr) initPacingRate(w *Window, srtt Time) {
	if srtt == 0 {
		srtt = time.Millisecond
	}
	w.Rate = percent(Rate(b.initialCwnd, srtt), bbrGains[bbrStartup].pacing)
}

// setPacingRate implements SetPacingRate of the BBR draft.
func (b *bbr) setPacingRate(w *Window) { b.setPacingRateWithGain(w, bbrGains[b.state].pacing) }

// setPacingRateWithGain implements SetPacingRateWithGain of the BBR draft. The rate never falls until the path has
// been full once.
func (b *bbr) setPacingRateWithGain(w *Window, gain uint64) {
	rate := percent(percent(b.bw, gain), 100-bbrPacingMargin)
	if rate > 0 && (b.fullBwReached || rate > w.Rate) {
		w.Rate = rate
	}
}

// bdpMultiple implements BDPMultiple (section 5.6.4.2 of the BBR draft).
func (b *bbr) bdpMultiple(bw, gain uint64) uint64 {
	if b.minRTT == bbrNone {
		return b.initialCwnd
	}
	return percent(BytesIn(bw, b.minRTT), gain)
}

// quantizationBudget implements QuantizationBudget: it adds room for the large frames that both ends assemble
// (section 5.5.8.1 of the BBR draft).
func (b *bbr) quantizationBudget(w *Window, volume uint64) uint64 {
	volume = max(volume, 3*uint64(w.quantum()), bbrMinPipe*uint64(w.MSS))
	if b.state == bbrProbeUp {
		volume += 2 * uint64(w.MSS)
	}
	return volume
}

// inflight implements Inflight of the BBR draft: the volume in flight for a bandwidth and a gain, with room for large
// frames.
func (b *bbr) inflight(w *Window, bw, gain uint64) uint64 {
	return b.quantizationBudget(w, b.bdpMultiple(bw, gain))
}

// maxInflight implements UpdateMaxInflight of the BBR draft: the volume in flight for the current bandwidth and window
// gain.
func (b *bbr) maxInflight(w *Window) uint64 {
	return b.quantizationBudget(w, b.bdpMultiple(b.bw, bbrGains[b.state].cwnd)+b.extraAcked.max())
}

// setCwnd implements SetCwnd (section 5.6.4.6 of the BBR draft).
func (b *bbr) setCwnd(w *Window, s *Sample) {
	most, cwnd := b.maxInflight(w), uint64(w.Size)
	switch {
	case b.fullBwReached:
		cwnd = min(cwnd+uint64(s.Acked), most)
	case cwnd < most || s.Total < b.initialCwnd:
		cwnd += uint64(s.Acked)
	}
	least := bbrMinPipe * uint64(w.MSS)
	cwnd = max(cwnd, least)
	if b.state == bbrProbeRTT {
		cwnd = min(cwnd, b.probeRTTCwnd(w))
	}
	w.Size = uint32(min(cwnd, max(b.volumeCap(w), least), MaxWindow))
}

// volumeCap returns the limit that BoundCwndForModel applies to the window (section 5.6.4.7 of the BBR draft).
func (b *bbr) volumeCap(w *Window) uint64 {
	most := uint64(bbrNone)
	switch {
	case b.state == bbrProbeCruise || b.state == bbrProbeRTT:
		most = b.inflightWithHeadroom(w)
	case b.inProbeBw():
		most = b.inflightLongterm
	}
	return min(most, b.inflightShortterm)
}

// probeRTTCwnd implements ProbeRTTCwnd (section 5.6.4.5 of the BBR draft).
func (b *bbr) probeRTTCwnd(w *Window) uint64 {
	return max(b.bdpMultiple(b.bw, bbrGains[bbrProbeRTT].cwnd), bbrMinPipe*uint64(w.MSS))
}

// saveCwnd implements SaveCwnd (section 5.6.4.4 of the BBR draft): it saves the last window not cut by recovery or ProbeRTT.
func (b *bbr) saveCwnd(w *Window) {
	if !b.recovering && b.state != bbrProbeRTT {
		b.priorCwnd = uint64(w.Size)
	} else {
		b.priorCwnd = max(b.priorCwnd, uint64(w.Size))
	}
}

// restoreCwnd implements RestoreCwnd of the BBR draft: the window is at least the saved one.
func (b *bbr) restoreCwnd(w *Window) { w.Size = uint32(max(uint64(w.Size), b.priorCwnd)) }
