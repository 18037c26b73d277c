package thread

import "sync/atomic"

// Debt says whether the wake of a thread for the runtime's poller is deferred. The runtime and the kernel share it; all accesses are
// atomic. The wake exists only so that a thread waits in the poller: it must be made when an interrupt of a device arrives, when the
// runtime breaks the poller off for a new timer, or when the poller's time ends. A thread that calls the poller settles the debt.
//
// The runtime defers a wake by Defer. Then it checks whether an interrupt has arrived or the poller was broken off, and if so, it makes
// the wake itself. An interrupt and a break are first recorded (in Rung, in netpollWakeSig), and then Pay is called. So one of the two makes the wake.
type Debt uint32

// Values of Debt. The zero value is Settled.
const (
	Settled Debt = iota // no wake is deferred
	Unpaid              // a wake is deferred
	Late                // the poller's time has ended and no thread has called the poller since: no wake may be deferred
)

// Settle is called when a thread calls the poller.
func (d *Debt) Settle() { atomic.StoreUint32((*uint32)(d), uint32(Settled)) }

// Defer defers a wake, and reports whether it did.
func (d *Debt) Defer() bool {
	return atomic.CompareAndSwapUint32((*uint32)(d), uint32(Settled), uint32(Unpaid))
}

// Pay is called when the wake must be made. It reports whether a wake was deferred.
func (d *Debt) Pay() bool {
	return atomic.CompareAndSwapUint32((*uint32)(d), uint32(Unpaid), uint32(Settled))
}

// Expire is called when the poller's time has ended. It reports whether a wake was deferred.
func (d *Debt) Expire() bool { return atomic.SwapUint32((*uint32)(d), uint32(Late)) == uint32(Unpaid) }
