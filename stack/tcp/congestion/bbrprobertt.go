package congestion

// BBR: the minimum round trip time, ProbeRTT, and restarting from idle (draft-ietf-ccwg-bbr sections 5.3.4
// and 5.4).

// updateMinRTT implements UpdateMinRTT (section 5.3.4.3 of the BBR draft).
func (b *bbr) updateMinRTT(now Time, s *Sample) {
	b.probeRTTExpired = now > b.probeRTTDelayAt+bbrProbeRTTInterval
	if s.RTT > 0 && (s.RTT < b.probeRTTDelay || b.probeRTTExpired) {
		b.probeRTTDelay, b.probeRTTDelayAt = s.RTT, now
	}
	if b.probeRTTDelay < b.minRTT || now > b.minRTTAt+bbrMinRTTLen {
		b.minRTT, b.minRTTAt = b.probeRTTDelay, b.probeRTTDelayAt
	}
}

// checkProbeRTT implements CheckProbeRTT of the BBR draft.
func (b *bbr) checkProbeRTT(w *Window, now Time, s *Sample) {
	if b.state != bbrProbeRTT && b.probeRTTExpired && !b.idleRestart {
		b.saveCwnd(w)
		b.enter(bbrProbeRTT)
		b.probeRTTDone = 0
		b.ackPhase = acksProbeStopping
		b.startRound(s.Total)
	}
	if b.state == bbrProbeRTT {
		b.handleProbeRTT(w, now, s)
	}
	if s.Delivered > 0 {
		b.idleRestart = false
	}
}

// handleProbeRTT implements HandleProbeRTT of the BBR draft.
func (b *bbr) handleProbeRTT(w *Window, now Time, s *Sample) {
	s.Withhold = true
	switch {
	case b.probeRTTDone == 0:
		if uint64(s.Flight) <= b.probeRTTCwnd(w) {
			b.probeRTTDone = now + bbrProbeRTTTime
			b.probeRTTRound = false
			b.startRound(s.Total)
		}
	default:
		if b.roundStart {
			b.probeRTTRound = true
		}
		if b.probeRTTRound {
			b.checkProbeRTTDone(w, now, s.Total)
		}
	}
}

// checkProbeRTTDone implements CheckProbeRTTDone and ExitProbeRTT (section 5.3.4.4 of the BBR draft).
func (b *bbr) checkProbeRTTDone(w *Window, now Time, delivered uint64) {
	if b.probeRTTDone == 0 || now <= b.probeRTTDone {
		return
	}
	b.probeRTTDelayAt = now
	b.restoreCwnd(w)
	b.resetShortTermModel()
	if !b.fullBwReached {
		b.enter(bbrStartup)
		return
	}
	b.startProbeDown(now, delivered)
	b.enter(bbrProbeCruise)
}

// Restart implements HandleRestartFromIdle (section 5.4.1 of the BBR draft).
func (b *bbr) Restart(w *Window, now, idle Time) {
	b.idleRestart = true
	b.extraStart = now
	switch {
	case b.inProbeBw():
		b.setPacingRateWithGain(w, 100)
	case b.state == bbrProbeRTT:
		b.checkProbeRTTDone(w, now, b.nextRoundDelivered)
	}
}
