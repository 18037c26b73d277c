package flood

import (
	"sync/atomic"

	"loam/link"
)

// Listing sets up the set of flows of a device, at the first flood of stray segments (link.KindStray). Each shard adds its
// connections to the set, and from then on each connection when it begins and ends. When all shards have done so, the device can
// drop the segments of other flows. The set stays after the flood, so that the next flood needs no preparation.
//
// The senders do not matter here, as they do for a Census. Segments without a connection are at most answered with a reset, and the
// rate of resets is limited to less than what is still delivered (Strangers.AllowReset).
//
// Only the goroutine that creates a Listing calls its methods, except Joined and Flows, which any goroutine may call.
type Listing struct {
	device  link.FlowThinner
	flows   atomic.Pointer[link.Flows] // nil until Begin
	left    atomic.Int32               // shards that have not joined
	refused bool                       // the device has no set
}

// NewListing returns a Listing for the set of flows of a device, or nil if the device cannot find stray segments (of no connection).
func NewListing(device link.Thinner) *Listing {
	if d, ok := device.(link.FlowThinner); ok {
		return &Listing{device: d}
	}
	return nil
}

// Begin returns the set of flows when it is called for the first time. Each of n shards must then join it and call Joined. complete
// means that all have done so. If the device has no set, only the first call returns an error.
func (l *Listing) Begin(n int) (flows *link.Flows, complete bool, err error) {
	switch {
	case l.refused:
		return nil, false, nil
	case l.flows.Load() != nil:
		return nil, l.left.Load() == 0, nil
	}
	if flows, err = l.device.Flows(); err != nil {
		l.refused = true
		return nil, false, err
	}
	l.left.Store(int32(n))
	l.flows.Store(flows)
	return flows, false, nil
}

// Joined records that a shard has joined the set, and reports whether it was the last one.
func (l *Listing) Joined() bool { return l.left.Add(-1) == 0 }

// Flows returns the set, or nil if there is none. l may be nil.
func (l *Listing) Flows() *link.Flows {
	if l == nil {
		return nil
	}
	return l.flows.Load()
}
