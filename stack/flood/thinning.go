package flood

import (
	"net/netip"
	"sync/atomic"
	"time"

	"loam/link"
)

// How a flood is thinned out.
const (
	thinShift = 4 // one frame in 16 is delivered
	// Interval is how long thinning lasts before the stack checks, by the frames that arrive then, whether the flood continues.
	Interval  = time.Second
	thinLeast = 512 // if fewer frames than this were delivered in an Interval, the flood is over
)

// never is the deadline of a Thinning without a flood.
const never = time.Duration(1<<63 - 1)

// Thinning makes a device deliver only a share of some kinds of frames, except from known peers. Only the goroutine
// that creates a Thinning calls its methods, except Active and Delivered.
type Thinning struct {
	device link.Thinner
	// The function used reports whether a UDP port has a user, so that datagrams to it are
	// not thinned out. The function known returns the known peers.
	used  func(port uint16) bool
	known func() []netip.Addr

	kinds  link.Kinds // kinds of frames that are being thinned out
	port   uint16     // destination port for link.KindUDP
	review time.Duration
	unable bool // the device has refused to thin out frames

	active    atomic.Bool
	delivered atomic.Int64 // frames of any link.Kinds that have arrived since the last change
}

// NewThinning returns the thinning of a device.
func NewThinning(device link.Thinner, used func(port uint16) bool, known func() []netip.Addr) *Thinning {
	return &Thinning{device: device, used: used, known: known}
}

// Active reports whether the device is thinning out frames. Any goroutine may call it.
func (t *Thinning) Active() bool { return t.active.Load() }

// Delivered records n frames of any link.Kinds that have arrived. Any goroutine may call it.
func (t *Thinning) Delivered(n int64) { t.delivered.Add(n) }

// Begin makes the device thin out further kinds. port is the destination port of a flood of UDP datagrams. If a socket
// uses that port, its datagrams are not thinned out. Begin reports whether it has changed anything.
func (t *Thinning) Begin(now time.Duration, kinds link.Kinds, port uint16) bool {
	if kinds&link.KindUDP != 0 && t.used(port) {
		kinds &^= link.KindUDP
	}
	if t.unable || kinds&^t.kinds == 0 {
		return false
	}
	if kinds&link.KindUDP != 0 {
		t.port = port
	}
	t.kinds |= kinds
	t.apply(now)
	return true
}

// Deadline returns when Advance must be called. t may be nil.
func (t *Thinning) Deadline() time.Duration {
	if t == nil || t.kinds == 0 {
		return never
	}
	return t.review
}

// Advance ends the thinning after the flood, and renews it during the flood, since there may be new peers. t may be nil.
func (t *Thinning) Advance(now time.Duration) {
	if now < t.Deadline() {
		return
	}
	if t.delivered.Load() < thinLeast {
		t.kinds = 0
	}
	if t.used(t.port) {
		t.kinds &^= link.KindUDP
	}
	t.apply(now)
}

// apply passes the current kinds and known peers to the device.
func (t *Thinning) apply(now time.Duration) {
	if err := t.device.Thin(link.Thinning{Kinds: t.kinds, Port: t.port, Shift: thinShift, Known: t.known()}); err != nil {
		t.kinds, t.port, t.unable = 0, 0, true
	}
	t.review = now + Interval
	t.delivered.Store(0)
	t.active.Store(t.kinds != 0)
}
