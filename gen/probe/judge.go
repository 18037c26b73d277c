package probe

import (
	"sync/atomic"
	"time"
)

// judge counts a genuine answer that arrived at time now. wanted is true if the answer is a result: it is of a kind
// that the user wants, and not a duplicate.
func (r *run) judge(rep reply, now int64) (res Result, wanted bool) {
	at, ok := r.space.position(rep.question)
	if !ok { // the question (address and port) belongs to another shard that uses the same key
		r.counts.other[foreign].Add(1)
		return res, false
	}
	if rep.answer.Settles() && !r.seen.add(at) {
		r.counts.duplicates.Add(1)
		return res, false
	}
	r.counts.answers[rep.answer].Add(1)
	if rep.rtt >= 0 {
		r.counts.roundTrip(rep.rtt)
	}
	return Result{
		Addr: rep.addr, Port: rep.port, Answer: rep.answer, Code: rep.code, HopLimit: rep.hopLimit,
		RTT: time.Duration(rep.rtt), From: rep.from, MAC: rep.mac, At: r.start.Add(time.Duration(now)),
	}, r.All || rep.answer.Positive()
}

// counts holds counters that all lanes share.
type counts struct {
	resets     atomic.Uint64 // number of resets sent
	answers    [numAnswers]atomic.Uint64
	other      [forged + 1]atomic.Uint64 // number of frames that are not genuine answers, by verdict
	duplicates atomic.Uint64
	// Round-trip times in nanoseconds.
	rtts           atomic.Uint64
	sumRTT         atomic.Int64
	minRTT, maxRTT atomic.Int64
}

func (c *counts) roundTrip(rtt int64) {
	c.rtts.Add(1)
	c.sumRTT.Add(rtt)
	for least := c.minRTT.Load(); rtt < least && !c.minRTT.CompareAndSwap(least, rtt); least = c.minRTT.Load() {
	}
	for most := c.maxRTT.Load(); rtt > most && !c.maxRTT.CompareAndSwap(most, rtt); most = c.maxRTT.Load() {
	}
}

func (c *counts) found() uint64 {
	return c.answers[EchoReply].Load() + c.answers[SYNACK].Load() + c.answers[Data].Load() + c.answers[Resolved].Load()
}

func (c *counts) summary() (s Summary) {
	for a := range c.answers {
		s.Answers[a] = c.answers[a].Load()
	}
	s.Duplicates, s.Forged = c.duplicates.Load(), c.other[forged].Load()
	s.Resets = c.resets.Load()
	s.Malformed, s.Foreign = c.other[malformed].Load(), c.other[foreign].Load()
	if n := c.rtts.Load(); n > 0 {
		s.RTT = Spread{
			Count: n, Min: time.Duration(c.minRTT.Load()), Max: time.Duration(c.maxRTT.Load()),
			Mean: time.Duration(c.sumRTT.Load() / int64(n)),
		}
	}
	return s
}
