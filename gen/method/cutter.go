package method

import (
	"loam/link"
	"loam/link/match"
)

// cutter delivers the frames that match the rules. A train of datagrams or segments may arrive unsegmented (over
// veth, from UDP_SEGMENT or TCP). It is segmented here, so that each frame counts, as with hardware.
type cutter struct {
	rules []match.Rule
	cut   [link.BatchSize]*link.Frame
}

// deliver passes a frame to got, or the frames that it is segmented into, and returns their number. at is the
// receive time.
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
