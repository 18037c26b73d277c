package congestion

// BBR: Startup, Drain and the four phases of ProbeBW (draft-ietf-ccwg-bbr sections 5.3.1 to 5.3.3).

import "time"

// enter changes the state to s.
func (b *bbr) enter(s bbrState) { b.state = s }

// checkStartupDone implements CheckStartupDone (section 5.3.1.1 of the BBR draft).
func (b *bbr) checkStartupDone(w *Window, s *Sample) {
	b.checkStartupHighLoss(s)
	if b.state == bbrStartup && b.fullBwReached {
		b.enter(bbrDrain)
		b.drainStartRound = b.roundCount
	}
}

// checkDrainDone implements CheckDrainDone (section 5.3.2 of the BBR draft).
func (b *bbr) checkDrainDone(w *Window, now Time, s *Sample) {
	if b.state == bbrDrain &&
		(uint64(s.Flight) <= b.inflight(w, b.bw, 100) || b.roundCount > b.drainStartRound+3) {
		b.startProbeDown(now, s.Total)
	}
}

// inProbeBw reports whether the state is one of ProbeBW.
func (b *bbr) inProbeBw() bool { return b.state >= bbrProbeDown && b.state <= bbrProbeUp }

// probingBw reports whether the sender exceeds the known delivery rate (IsProbingBW).
func (b *bbr) probingBw() bool {
	return b.state == bbrStartup || b.state == bbrProbeRefill || b.state == bbrProbeUp
}

// startProbeDown implements StartProbeBW_DOWN of the BBR draft. delivered is C.delivered.
func (b *bbr) startProbeDown(now Time, delivered uint64) {
	b.resetCongestionSignals()
	b.probeUpAckedPerInc = bbrNone
	b.pickProbeWait()
	b.cycleStamp = now
	b.ackPhase = acksProbeStopping
	b.startRound(delivered)
	b.enter(bbrProbeDown)
}

// startProbeRefill implements StartProbeBW_REFILL of the BBR draft. delivered is C.delivered.
func (b *bbr) startProbeRefill(delivered uint64) {
	b.resetShortTermModel()
	b.probeUpRounds, b.probeUpAcked = 0, 0
	b.probePrecautionary = false
	b.ackPhase = acksRefilling
	b.startRound(delivered)
	b.enter(bbrProbeRefill)
}

// startProbeUp implements StartProbeBW_UP of the BBR draft.
func (b *bbr) startProbeUp(w *Window, s *Sample) {
	b.ackPhase = acksProbeStarting
	b.startRound(s.Total)
	b.resetFullBw()
	b.fullBw = s.Rate
	b.enter(bbrProbeUp)
	b.raiseInflightLongtermSlope(w)
}

// pickProbeWait implements PickProbeWait (section 5.3.3.8.3 of the BBR draft). The wait is two to three seconds, and the round
// trip count starts at 0 or 1, so that flows do not probe in step.
func (b *bbr) pickProbeWait() {
	b.roundsSinceProbeUp = uint32(b.between(1))
	b.probeWait = 2*time.Second + Time(b.between(1000))*time.Millisecond
}

// updateProbeBwCyclePhase implements UpdateProbeBWCyclePhase (section 5.3.3.9 of the BBR draft).
func (b *bbr) updateProbeBwCyclePhase(w *Window, now Time, s *Sample) {
	if !b.fullBwReached || b.adaptLongTermModel(w, now, s) {
		return
	}
	switch b.state {
	case bbrProbeDown:
		if !b.isTimeToProbeBw(w, now, s) && b.isTimeToCruise(w, s) {
			b.enter(bbrProbeCruise)
		}
	case bbrProbeCruise:
		b.isTimeToProbeBw(w, now, s)
	case bbrProbeRefill:
		if b.roundStart {
			b.probeSample = true
			b.startProbeUp(w, s)
		}
	case bbrProbeUp:
		if b.isTimeToGoDown(w, s) {
			b.probeTooHigh = false
			b.startProbeDown(now, s.Total)
		}
	}
}

// isTimeToProbeBw implements IsTimeToProbeBW of the BBR draft: probe by the clock, or as often as Reno would lose a
// segment.
func (b *bbr) isTimeToProbeBw(w *Window, now Time, s *Sample) bool {
	if now <= b.cycleStamp+b.probeWait && !b.isRenoCoexistenceProbeTime(w) {
		return false
	}
	b.startProbeRefill(s.Total)
	return true
}

// isRenoCoexistenceProbeTime implements IsRenoCoexistenceProbeTime of the BBR draft. After a loss, Reno needs as many
// round trips to regain its window as the window has segments, so BBR probes no sooner.
func (b *bbr) isRenoCoexistenceProbeTime(w *Window) bool {
	return uint64(b.roundsSinceProbeUp) >= min(b.targetInflight(w)/uint64(w.MSS), 63)
}

// targetInflight implements TargetInflight of the BBR draft: the lower of the volume for the bandwidth and the window.
func (b *bbr) targetInflight(w *Window) uint64 {
	return min(b.bdpMultiple(b.bw, 100), uint64(w.Size))
}

// isTimeToCruise implements IsTimeToCruise of the BBR draft: there is headroom, and this flow has no queue.
func (b *bbr) isTimeToCruise(w *Window, s *Sample) bool {
	flight := uint64(s.Flight)
	return flight <= b.inflightWithHeadroom(w) && flight <= b.inflight(w, b.maxBw.max(), 100)
}

// isTimeToGoDown implements IsTimeToGoDown (section 5.3.3.7 of the BBR draft).
func (b *bbr) isTimeToGoDown(w *Window, s *Sample) bool {
	if b.probeTooHigh && uint64(s.Flight) >= b.inflightLongterm {
		b.probePrecautionary = true
		return true
	}
	if s.Full && uint64(w.Size) >= b.inflightLongterm {
		b.resetFullBw()
		b.fullBw = s.Rate
		return false
	}
	return b.fullBwNow
}

// inflightWithHeadroom implements InflightWithHeadroom of the BBR draft: it leaves a part of the path to other flows.
func (b *bbr) inflightWithHeadroom(w *Window) uint64 {
	if b.inflightLongterm == bbrNone {
		return bbrNone
	}
	headroom := max(uint64(w.MSS), percent(b.inflightLongterm, bbrHeadroom))
	return max(b.inflightLongterm-min(headroom, b.inflightLongterm), bbrMinPipe*uint64(w.MSS))
}

// raiseInflightLongtermSlope implements RaiseInflightLongtermSlope of the BBR draft: growth doubles each round trip.
func (b *bbr) raiseInflightLongtermSlope(w *Window) {
	growth := uint64(1) << b.probeUpRounds
	b.probeUpRounds = min(b.probeUpRounds+1, 30)
	b.probeUpAckedPerInc = max(uint64(w.Size)/growth, uint64(w.MSS))
}

// probeInflightLongtermUpward implements ProbeInflightLongtermUpward of the BBR draft.
func (b *bbr) probeInflightLongtermUpward(w *Window, s *Sample) {
	if !s.Full || uint64(w.Size) < b.inflightLongterm {
		return
	}
	b.probeUpAcked += uint64(s.Acked)
	if b.probeUpAcked >= b.probeUpAckedPerInc {
		delta := b.probeUpAcked / b.probeUpAckedPerInc
		b.probeUpAcked -= delta * b.probeUpAckedPerInc
		b.inflightLongterm += delta * uint64(w.MSS)
	}
	if b.roundStart {
		b.raiseInflightLongtermSlope(w)
	}
}

// adaptLongTermModel implements AdaptLongTermModel of the BBR draft. It reports whether it has changed the state.
func (b *bbr) adaptLongTermModel(w *Window, now Time, s *Sample) bool {
	if b.ackPhase == acksProbeStarting && b.roundStart {
		b.ackPhase = acksProbeFeedback
	}
	if b.ackPhase == acksProbeStopping && b.roundStart {
		b.probeSample = false
		b.ackPhase = acksInit
		if b.inProbeBw() && !s.Limited {
			b.maxBw.advance()
		}
		if b.inProbeBw() && b.probePrecautionary && !b.probeTooHigh {
			b.startProbeRefill(s.Total)
			return true
		}
	}
	if !s.Any || b.inflightLongterm == bbrNone || b.inflightTooHigh(s.Lost, s.InFlight, s.SACK) {
		return false
	}
	b.inflightLongterm = max(b.inflightLongterm, uint64(s.InFlight))
	if b.state == bbrProbeUp {
		b.probeInflightLongtermUpward(w, s)
	}
	return false
}
