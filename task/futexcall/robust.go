package futexcall

import (
	"sync/atomic"

	"loam/abi/linux"
	"loam/task/futex"
)

// This file releases the locks of a thread that ends or executes another program.

// Leave releases the robust futexes that a thread holds, and passes on its PI futexes. Their words show that the owner has
// died. ends says that the thread ends: no thread will wait for it.
func (o *Objects) Leave(c Caller, ends bool) {
	t := task{c, o}
	t.leaveRobust()
	t.leaveLocks(ends)
}

// leaveRobust releases the robust futexes that the thread holds. Their words show that the owner has died.
func (t task) leaveRobust() {
	list := t.Futexes().RobustList()
	if list == 0 {
		return
	}
	m := t.Memory()
	read := func(addr uint64) (uint64, bool) {
		v, errno := m.Pointer(addr)
		return v, errno == 0
	}
	futex.WalkRobust(list, read, func(r futex.Robust) {
		var wake, free bool
		if _, errno := update(t.Caller, r.Word, func(word uint32) (value uint32, errno linux.Errno) {
			var held bool
			if value, wake, held = futex.DiedOwner(word, uint32(t.ID())); !held {
				errno = linux.ESRCH
			}
			free = word == 0
			return value, errno
		}); errno != 0 && errno != linux.ESRCH {
			return
		}
		if !r.PI && (wake || r.Pending && free) { // a PI futex is passed on by leaveLocks
			t.WakeAt(t.Map(), r.Word)
		}
	})
	atomic.StoreUint64(&t.Futexes().robust, 0)
}

// leaveLocks passes on the PI futexes that the thread owns.
func (t task) leaveLocks(ends bool) {
	l := &t.locks
	l.mu.Lock()
	defer l.unlock()
	t.Futexes().left = ends
	for _, key := range l.table.Owned(uint32(t.ID())) {
		value, next := l.table.DiedPI(key)
		if next == nil {
			continue
		}
		if of := t.thread(next.Thread); of != nil {
			update(of, next.Word, func(uint32) (uint32, linux.Errno) { return value, 0 })
		}
		l.pass(next)
	}
}
