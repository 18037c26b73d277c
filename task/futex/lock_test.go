package futex

import "testing"

// TestRequeueLock: waiters move to the queue of a lock, and get it one after the other.
func TestRequeueLock(t *testing.T) {
	var table Table[int]
	lock, other := 2, 3
	for id := range uint32(3) {
		table.Wait(1, &waiter{Thread: 10 + id, Target: &lock}, AnyBit)
	}
	if table.Plain(1) {
		t.Error("waiters for a lock can be woken by FUTEX_WAKE")
	}
	if _, ok := table.Movable(1, other, 3); ok {
		t.Error("moved to another lock than the one they asked for")
	}
	list, ok := table.Movable(1, lock, 2)
	if !ok || len(list) != 2 {
		t.Fatalf("%v, %v", list, ok)
	}
	for _, w := range list {
		table.Cancel(w)
		table.WaitLock(lock, w, 7)
	}
	if table.Count(1) != 1 || table.Count(lock) != 2 || len(table.Owned(7)) != 1 {
		t.Errorf("%d stay, %d moved, owned %v", table.Count(1), table.Count(lock), table.Owned(7))
	}
	value, next := table.DiedPI(lock)
	if value != OwnerDied|Waiters|10 || next.Thread != 10 || len(table.Owned(10)) != 1 || len(table.Owned(7)) != 0 {
		t.Errorf("after the death of the owner: %x, %+v", value, next)
	}
	if value, next, ok := table.Unlock(lock, value, 10); !ok || value != 11 || next.Thread != 11 || len(table.owners) != 0 {
		t.Errorf("unlock: %x, %v", value, ok)
	}
}

// TestBlocks: a deadlock of two threads is found. Each owns a lock for which the other waits.
func TestBlocks(t *testing.T) {
	var table Table[int]
	waiters := map[uint32]*waiter{2: {Thread: 2}, 3: {Thread: 3}}
	of := func(id uint32) *waiter { return waiters[id] }
	table.WaitLock(1, waiters[2], 1) // 2 waits for 1
	table.WaitLock(2, waiters[3], 2) // 3 waits for 2
	for owner, want := range map[uint32]bool{1: true, 2: true, 3: true, 4: false} {
		if got := table.Blocks(owner, 1, of); got != want {
			t.Errorf("thread 1 for a lock of %d: %v", owner, got)
		}
	}
	table.Cancel(waiters[2])
	if table.Blocks(3, 1, of) {
		t.Error("the thread does not wait any more")
	}
}
