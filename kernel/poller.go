package kernel

import (
	"sync/atomic"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/kernel/thread"
)

// The runtime's poller waits in CallPoll. A device interrupt or a write to an eventfd(2) wakes it, as on Linux.
// Nothing else wakes it, because Loam's files make goroutines ready themselves. So the descriptor of
// epoll_create(2) has no set of descriptors and delivers no events.
const (
	pollFD = 1 << 20
	wakeFD = pollFD + 1
)

// pollControl implements epoll_ctl(2), by which the runtime adds wakeFD to its set. Any other descriptor returns EPERM, as a
// regular file does on Linux.
func pollControl(set uint64, op int, fd uint64) int64 {
	const add = 1
	if set != pollFD || fd != wakeFD || op != add {
		return -int64(linux.EPERM)
	}
	return 0
}

// poll implements CallPoll. It waits until a bit of Rung is set, until wakeFD is written to, or for the number of
// nanoseconds in DI; a negative number means no timeout. The result is 1 if wakeFD was written to, which is then reset, and
// 0 otherwise.
func (k *core) poll(c *cpu, f *amd64.Frame) (int64, bool) {
	deadline := int64(thread.Never)
	const longest = 1 << 62
	if timeout := int64(f.DI); timeout >= 0 && timeout < longest {
		deadline = k.clock.now() + timeout
	}
	k.poller.until, k.poller.due = deadline, false
	Debt.Settle()
	switch {
	case k.poller.woken:
		k.poller.woken = false
		return 1, true
	case atomic.LoadUint64(&Rung) != 0:
		return 0, true
	}
	return k.wait(c, keyPoll, deadline, 0)
}

// wakePoller serves a write to wakeFD: it wakes the poller, or sets woken. If no thread waits there because the wake of one is
// deferred, the wake is due: the runtime has set a timer for an earlier time than until, or for a thread that has just left the poller.
func (k *core) wakePoller() {
	k.poller.woken = k.threads.Wake(keyPoll, 1, 1) == 0
	if k.poller.woken && Debt.Pay() {
		k.poller.due = true
	}
}

// When an interrupt has woken the poller's thread, no thread waits in the poller until that thread is idle again, or until
// the runtime wakes another one. The runtime may defer this wake: it sets Debt to thread.Unpaid (runtime.loamOwe). The kernel makes
// the wake if an interrupt of a device arrives meanwhile, if the runtime writes to wakeFD, or at the time until which the poller would have waited. For that it
// wakes the stand-in, a thread of the runtime that waits in CallStandIn. As for any ready thread, it wakes an idle CPU at once, or under
// emulation after a delay (shareWork). If the poller is called before, the stand-in is not woken.

// Debt says whether the wake of a thread for the poller is deferred.
var Debt thread.Debt

// poller is the state of the runtime's poller.
type poller struct {
	woken  bool  // wakeFD was written to, and no poller has been woken for that yet
	called bool  // the stand-in must make a wake, and was not waiting
	due    bool  // a wake that was deferred must be made: the stand-in must be woken
	until  int64 // time at which the latest call of poll ends; a thread must be in the poller then; thread.Never once it has passed
}

// standIn implements CallStandIn. It waits until a deferred wake must be made.
func (k *core) standIn(c *cpu) (int64, bool) {
	if k.poller.called {
		k.poller.called = false
		return 0, true
	}
	return k.wait(c, keyStandIn, thread.Never, 0)
}

// callPoller wakes the poller because an interrupt has arrived. If no thread waits there because the wake of one is deferred, the
// wake is due.
func (k *core) callPoller() {
	if k.threads.Wake(keyPoll, thread.Max, 0) == 0 && Debt.Pay() {
		k.poller.due = true
	}
}

// expirePoller is called on each way through the kernel. When the poller's time has ended, a deferred wake is due, without a delay, and no
// further wake is deferred until the poller is called.
func (k *core) expirePoller(c *cpu, now int64) {
	if now < k.poller.until {
		return
	}
	k.poller.until = thread.Never
	if Debt.Expire() {
		k.poller.due = true
		c.shareSoon()
	}
}

// callStandIn makes the wake that is due, if there is one: it wakes the thread that makes deferred wakes.
func (k *core) callStandIn() {
	if k.poller.due {
		k.poller.due = false
		k.poller.called = k.threads.Wake(keyStandIn, 1, 0) == 0
	}
}
