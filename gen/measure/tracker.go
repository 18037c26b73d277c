package measure

import (
	"sort"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Tracker counts the frames of one stream at the receiver.
//
// A frame is reordered if a frame with a higher number has arrived earlier (RFC 4737 section 3). Its extent (section
// 4.2.1) is the number of arrivals by which it is late, counted from the first arrival with a higher number. That first
// arrival directly follows a gap in the numbers, so a Tracker stores only gaps. Duplicates are not counted as
// reordered, and not in extents.
//
// Frames whose numbers are below the window of 65536 numbers cannot be classified. They are counted as Ancient and as
// lost.
//
// The first frame that arrives need not be the first that was sent, because a sink may start late. So lower numbers are
// not counted as lost but as Stats.Before, until a frame with a lower number arrives.
type Tracker struct {
	window
	stats   Stats
	first   uint64       // the lowest number that has arrived
	gaps    [maxGaps]gap // ring buffer of the latest gaps
	numGaps uint64
	latency *hdrhistogram.Histogram
	extents *hdrhistogram.Histogram
	transit int64
	jitter  float64
}

// maxGaps is the number of gaps that a Tracker stores. If a late frame belongs to an older gap, its extent is counted
// from the oldest stored gap.
const maxGaps = 1024

// gap describes a gap in the numbers: the first number after the gap, and how many frames had arrived when that frame
// arrived.
type gap struct{ number, arrival uint64 }

const longestLatency = int64(100 * time.Second)

// Stats are the counters of a Tracker since it was created.
type Stats struct {
	Received   uint64 // all frames, duplicates included
	Bytes      uint64 // bytes of the received frames, as passed to Arrive
	Unique     uint64 // all frames, duplicates excluded
	Duplicates uint64
	Reordered  uint64
	Ancient    uint64 // frames whose numbers are below the window
	Expected   uint64 // number of sequence numbers from the lowest to the highest that arrived
	Before     uint64 // numbers below the lowest that arrived, modulo 2^32: lost, or sent before the receiver started
	Negative   uint64 // frames with a negative transit time, which means that the clocks disagree
}

// NewLatency returns an empty histogram of latencies in nanoseconds.
func NewLatency() *hdrhistogram.Histogram { return hdrhistogram.New(1, longestLatency, 3) }

// NewTracker returns the tracker of a stream.
func NewTracker() *Tracker {
	return &Tracker{
		latency: NewLatency(),
		extents: hdrhistogram.New(1, windowSize, 3),
	}
}

// Arrive counts a frame that arrived at time now; bytes is its size. now must be of the same clock as Tag.Sent. If the
// machines have synchronized clocks, the transit time is the one-way latency. If a peer sends the frames back, it is
// the round-trip time.
func (t *Tracker) Arrive(now int64, tag Tag, bytes int) {
	t.stats.Received++
	t.stats.Bytes += uint64(bytes)
	s := t.extend(tag.Sequence)
	switch {
	case t.stats.Received == 1:
		t.first = s
		t.gaps[0], t.numGaps = gap{s, 0}, 1
		t.forward(s)
		t.set(s)
	case s >= t.next:
		if s > t.next {
			t.gaps[t.numGaps%maxGaps] = gap{s, t.stats.Unique}
			t.numGaps++
		}
		t.forward(s)
		t.set(s)
	case !t.reaches(s):
		t.stats.Ancient++
		return
	case t.set(s):
		t.stats.Duplicates++
		return
	default:
		t.first = min(t.first, s)
		t.stats.Reordered++
		_ = t.extents.RecordValue(min(t.extent(s), windowSize))
	}
	t.stats.Unique++
	t.time(tag.Since(now))
}

// wrap is the number of sequence numbers. behind is the number of them that count as lower than the next expected
// number. All others count as higher, so a receiver may miss up to wrap-behind frames in a row.
const (
	wrap   = 1 << 32
	behind = 1 << 20
)

// extend returns the 64-bit number of a frame. It derives the number from the 32 bits in the tag and from the earlier
// arrivals. Extended numbers start at wrap, so that numbers below the first one are not negative.
func (t *Tracker) extend(sequence uint32) uint64 {
	if t.stats.Received == 1 {
		return wrap + uint64(sequence)
	}
	ahead := uint64(sequence - uint32(t.next))
	if back := wrap - ahead; back <= behind {
		return t.next - back
	}
	return t.next + ahead
}

// extent returns the number of arrivals by which the current frame, with number s, is late.
func (t *Tracker) extent(s uint64) int64 {
	oldest := t.numGaps - min(t.numGaps, maxGaps)
	i := sort.Search(int(t.numGaps-oldest), func(i int) bool {
		return t.gaps[(oldest+uint64(i))%maxGaps].number > s
	})
	return int64(t.stats.Unique - t.gaps[(oldest+uint64(i))%maxGaps].arrival)
}

// time records a transit time in nanoseconds. Jitter follows RFC 3550 section 6.4.1: the difference of consecutive
// transit times, smoothed by a factor of 16.
func (t *Tracker) time(transit int64) {
	if t.stats.Unique > 1 {
		d := float64(transit - t.transit)
		t.jitter += (max(d, -d) - t.jitter) / 16
	}
	t.transit = transit
	if transit < 0 {
		t.stats.Negative++
		return
	}
	_ = t.latency.RecordValue(min(transit, longestLatency))
}

// Stats returns the counters.
func (t *Tracker) Stats() Stats {
	s := t.stats
	if s.Received > 0 {
		s.Expected, s.Before = t.next-t.first, t.first%wrap
	}
	return s
}

// Lost returns how many frames were lost. The parameter sent is the number of frames that
// the sender has sent. A caller that does not know this number passes Expected; frames
// lost at the end are then not counted.
func (s Stats) Lost(sent uint64) uint64 { return sent - min(sent, s.Unique) }

// Jitter returns the jitter estimate of RFC 3550.
func (t *Tracker) Jitter() time.Duration { return time.Duration(t.jitter) }

// Latency returns the histogram of transit times in nanoseconds, with three significant digits, up to 100 seconds. The
// Tracker continues to change the histogram.
func (t *Tracker) Latency() *hdrhistogram.Histogram { return t.latency }

// Extents returns the histogram of the extents of reordered frames.
func (t *Tracker) Extents() *hdrhistogram.Histogram { return t.extents }
