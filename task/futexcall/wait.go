package futexcall

import (
	"time"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/task/futex"
)

// Plain futexes: waiting while a word has a value, and waking.

// wait implements FUTEX_WAIT and FUTEX_WAIT_BITSET: it waits if the futex word has the expected value. The timeout of
// FUTEX_WAIT is relative, and that of FUTEX_WAIT_BITSET absolute. Errors: EAGAIN if the word has another value,
// EINVAL, EFAULT, ETIMEDOUT, EINTR.
func (t task) wait(key mem.Location, a call.Args, absolute bool, bits uint32) (uint64, linux.Errno) {
	if bits == 0 {
		return 0, linux.EINVAL
	}
	most := forever
	if a.A4 != 0 {
		var errno linux.Errno
		if most, errno = t.Duration(a.A4); errno != 0 {
			return 0, errno
		}
		if absolute {
			now, _ := t.Clock(clockOf(a))
			most = max(most-time.Duration(now), 0)
		}
	}
	if _, errno := t.Load(a.A1); errno != 0 { // this makes the page of the word present, which cannot be done with the lock held
		return 0, errno
	}
	w := &t.Futexes().waiter
	if errno := t.enqueue(key, w, a.A1, uint32(a.A3), bits); errno != 0 {
		return 0, errno
	}
	return 0, t.await(w, most)
}

// enqueue adds a waiter to the queue of a plain futex, if its word, at an address, has a value. Errors: EAGAIN, EFAULT.
func (t task) enqueue(key mem.Location, w *waiter, addr uint64, value, bits uint32) linux.Errno {
	b := t.of(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	errno := expect(t.Caller, addr, value)
	if errno == 0 {
		b.enqueue(key, w, bits)
	}
	return errno
}

// await waits until another thread wakes w, which is in the queue of a futex. Errors: ETIMEDOUT, EINTR.
func (t task) await(w *waiter, most time.Duration) linux.Errno {
	var end time.Time
	if most >= 0 {
		end = time.Now().Add(most)
	}
	for {
		errno := t.Await(w.Woken, most)
		switch {
		case errno != 0 && t.cancel(w):
			return errno
		case w.Place.Load() == 0:
			return 0
		}
		if most >= 0 { // the value in the channel was not for this wait
			most = max(time.Until(end), 0)
		}
	}
}

// wake implements FUTEX_WAKE and FUTEX_WAKE_BITSET. As on Linux, a number below 1 wakes one waiter. Errors: EINVAL.
func (t task) wake(key mem.Location, a call.Args, bits uint32) (uint64, linux.Errno) {
	b := t.of(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	if bits == 0 || !t.plain(b, key) {
		return 0, linux.EINVAL
	}
	return uint64(rouse(b.table.Wake(key, max(number(a.A3), 1), bits))), 0
}

// requeue implements FUTEX_REQUEUE and FUTEX_CMP_REQUEUE: it wakes some waiters and moves others to a second
// futex. Errors: EINVAL, EFAULT, EAGAIN.
func (t task) requeue(key mem.Location, a call.Args, private, compare bool) (uint64, linux.Errno) {
	to, ok := t.Map().Locate(a.A5, private)
	if !ok {
		return 0, linux.EFAULT
	}
	if number(a.A3) < 0 || number(a.A4) < 0 {
		return 0, linux.EINVAL
	}
	if _, errno := t.Load(a.A1); errno != 0 {
		return 0, errno
	}
	from, toBucket, unlock := t.lockBoth(key, to)
	defer unlock()
	if !t.plain(from, key) {
		return 0, linux.EINVAL
	}
	if compare {
		if errno := expect(t.Caller, a.A1, uint32(a.A6)); errno != 0 {
			return 0, errno
		}
	}
	n, moved := requeue(from, toBucket, key, to, number(a.A3), number(a.A4))
	if compare {
		n += moved
	}
	return uint64(n), 0
}

// requeue wakes some waiters of a futex (key) in the first bucket (from), and moves others to a second futex (to) in
// the second bucket (other). It returns the numbers of both. The caller holds the locks of both buckets.
func requeue(from, other *bucket, key, to mem.Location, wake, move int) (woken, moved int) {
	if from == other {
		list, moved := from.table.Requeue(key, to, wake, move)
		return rouse(list), moved
	}
	list, others := from.table.MoveTo(&other.table, key, to, wake, move)
	for _, w := range others {
		w.Place.Store(index(to) + 1)
	}
	return rouse(list), len(others)
}

// wakeOp implements FUTEX_WAKE_OP: it changes a second futex word, and wakes waiters of both futexes. Errors:
// EINVAL, EFAULT, ENOSYS.
func (t task) wakeOp(key mem.Location, a call.Args, private bool) (uint64, linux.Errno) {
	second, ok := t.Map().Locate(a.A5, private)
	if !ok {
		return 0, linux.EFAULT
	}
	if errno := writable(t.Caller, a.A5); errno != 0 {
		return 0, errno
	}
	b, other, unlock := t.lockBoth(key, second)
	defer unlock()
	if !t.plain(b, key) || !t.plain(other, second) {
		return 0, linux.EINVAL
	}
	compares := false
	_, errno := update(t.Caller, a.A5, func(old uint32) (uint32, linux.Errno) {
		value, is, ok := futex.Operation(a.A6).Apply(old)
		if compares = is; !ok {
			return 0, linux.ENOSYS
		}
		return value, 0
	})
	if errno != 0 {
		return 0, errno
	}
	n := rouse(b.table.Wake(key, max(number(a.A3), 1), futex.AnyBit))
	if compares {
		n += rouse(other.table.Wake(second, max(number(a.A4), 1), futex.AnyBit))
	}
	return uint64(n), 0
}

// WakeAt wakes one thread that waits for the word at an address, whether it waits with FUTEX_PRIVATE_FLAG or without.
func (o *Objects) WakeAt(m *mem.Map, addr uint64) {
	if key, ok := m.Locate(addr, false); ok {
		o.wakeOne(key)
	}
	o.wakeOne(mem.Location{Map: m, Offset: addr})
}

// wakeOne wakes one waiter of a futex without priority inheritance.
func (o *Objects) wakeOne(key mem.Location) {
	b := o.of(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	if o.plain(b, key) {
		rouse(b.table.Wake(key, 1, futex.AnyBit))
	}
}
