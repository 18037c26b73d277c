package measure

import (
	"sort"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Tracker follows one stream at the receiver.
//
// A frame is reordered if its number is below one that arrived before it (RFC
// 4737 section 3). The extent (section 4.2.1) says by how many arrivals it is
// late: counted from the first arrival with a higher number. That arrival stands
// right behind a gap in the numbers, so only gaps are remembered. Duplicates are
// neither reordered nor do they count in extents.
//
// What is older than the window of 65536 numbers cannot be told apart any more:
// it is counted as Ancient, and as lost.
//
// A sender that is started again counts from 0 again, by a later time: see number.
type Tracker struct {
	window
	stats   Stats
	runs    runs
	gaps    [maxGaps]gap // a ring of the latest
	numGaps uint64
	latency *hdrhistogram.Histogram
	extents *hdrhistogram.Histogram
	transit int64
	jitter  float64
}

// maxGaps is how many gaps are remembered; for a frame that is later than so many
// gaps the extent is counted from the oldest of these.
const maxGaps = 1024

// gap is where numbers were left out: the first number behind it, and which
// arrival that was.
type gap struct{ number, arrival uint64 }

const longestLatency = int64(100 * time.Second)

// Stats are counts since the Tracker was made.
type Stats struct {
	Received   uint64 // frames, duplicates included
	Bytes      uint64 // in them, as given to Arrive
	Unique     uint64 // frames without duplicates
	Duplicates uint64
	Reordered  uint64
	Ancient    uint64 // outside of the window
	Expected   uint64 // one above the highest number: what was sent, as far as is seen
	Negative   uint64 // sent after they arrived: the clocks do not agree
	Restarts   uint64 // of the sender, which begins to count at 0 again
}

// runs are where those of a sender begin among the numbers of a Tracker.
type runs struct {
	base, before  uint64 // number of the first frame of this run, and of the one before
	began, newest int64  // Tag.Sent of the first frame of this run that came, and of the latest
}

// silence is how long a sender sends nothing when it is started again, at the least. Two
// that have the same numbers at once, by a mistake, leave no such time: their frames are
// duplicates of one another.
const silence = int64(100 * time.Millisecond)

// NewTracker returns the tracker of a stream.
func NewTracker() *Tracker {
	return &Tracker{
		latency: hdrhistogram.New(1, longestLatency, 3),
		extents: hdrhistogram.New(1, windowSize, 3),
	}
}

// Arrive counts a frame of so many bytes that arrived at now, by the clock that
// Tag.Sent was read from: this gives one-way latency between machines whose
// clocks agree, and round trips where a peer sends frames back.
func (t *Tracker) Arrive(now int64, tag Tag, bytes int) {
	if t.stats.Received == 0 {
		t.runs.began, t.runs.newest = tag.Sent, tag.Sent
	}
	t.stats.Received++
	t.stats.Bytes += uint64(bytes)
	s := t.number(tag)
	switch {
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
		t.stats.Reordered++
		_ = t.extents.RecordValue(min(t.extent(s), windowSize))
	}
	t.stats.Unique++
	t.time(tag.Since(now))
}

// number is the place of a frame in all that its sender has sent. One with a number that
// has been passed, sent long after the frames that passed it, is of a new run, which is
// counted on from the highest number.
func (t *Tracker) number(tag Tag) uint64 {
	r := &t.runs
	if (Tag{Sent: r.began}).Since(tag.Sent) < -silence {
		return r.before + tag.Sequence // of the run before
	}
	later := (Tag{Sent: r.newest}).Since(tag.Sent)
	if later > silence && r.base+tag.Sequence < t.next {
		r.before, r.base, r.began = r.base, t.next, tag.Sent
		t.stats.Restarts++
	}
	if later > 0 {
		r.newest = tag.Sent
	}
	return r.base + tag.Sequence
}

// extent is how many arrivals the present one, with number s, is late.
func (t *Tracker) extent(s uint64) int64 {
	oldest := t.numGaps - min(t.numGaps, maxGaps)
	i := sort.Search(int(t.numGaps-oldest), func(i int) bool {
		return t.gaps[(oldest+uint64(i))%maxGaps].number > s
	})
	return int64(t.stats.Unique - t.gaps[(oldest+uint64(i))%maxGaps].arrival)
}

// time takes down a transit time. Jitter is that of RFC 3550 section 6.4.1: the
// mean deviation of the transit time from one frame to the next, smoothed by 16.
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

// Stats returns the counts.
func (t *Tracker) Stats() Stats {
	s := t.stats
	s.Expected = t.next
	return s
}

// Lost is how many of so many frames that were sent did not arrive. Who does not
// know that number takes Expected, and does not see a loss at the end.
func (s Stats) Lost(sent uint64) uint64 { return sent - min(sent, s.Unique) }

// Jitter is the estimate of RFC 3550.
func (t *Tracker) Jitter() time.Duration { return time.Duration(t.jitter) }

// Latency is the histogram of transit times in nanoseconds, of three digits, up
// to 100 seconds.
func (t *Tracker) Latency() *hdrhistogram.Histogram { return t.latency }

// Extents is the histogram of how many arrivals reordered frames were late.
func (t *Tracker) Extents() *hdrhistogram.Histogram { return t.extents }
