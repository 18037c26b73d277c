package method

import (
	"loam/link"
	"loam/link/match"
)

// cutter delivers the received frames that match the rules. Several datagrams or segments may arrive as one unsegmented
// frame, for example over veth, from a sender that uses UDP_SEGMENT or TCP. The cutter segments such a frame, so that
// the result is the same as with hardware.
type cutter struct {
	rules []match.Rule
	cut   [link.BatchSize]*link.Frame
}

// deliver calls the function got with a frame, or with each frame into which it is
// segmented. It returns the number of calls. The parameter at is the time of reception.
func (c *cutter) deliver(frame []byte, o link.Offload, at int64, got func([]byte, int64)) int {
	if !match.Any(c.rules, frame) {
		return 0
	}
	if o.GSO == link.GSONone || len(frame) > link.MaxFrame {
		got(frame, at)
		return 1
	}
	train := link.NewFrame(len(frame))
	defer train.Free()
	copy(train.Bytes(), frame)
	train.Offload = o
	count := 1
	for more := train.Admit(link.Ethernet); more && train.GSO != link.GSONone; {
		var n int
		if n, more = link.Segment(link.Ethernet, train, c.cut[:]); !more {
			break
		}
		for _, part := range c.cut[:n] {
			got(part.Bytes(), at)
		}
		link.FreeAll(c.cut[:n])
		count += n
	}
	got(train.Bytes(), at)
	return count
}
