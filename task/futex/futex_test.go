package futex

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type waiter = Waiter[int]

// threads returns the IDs of waiters.
func threads(all []*waiter) (ids []uint32) {
	for _, w := range all {
		ids = append(ids, w.Thread)
	}
	return ids
}

func wantThreads(t *testing.T, what string, got []*waiter, want ...uint32) {
	t.Helper()
	if !slices.Equal(threads(got), want) {
		t.Errorf("%s: %v, want %v", what, threads(got), want)
	}
}

// TestWake: waiters wake in order of arrival, and only those whose bit set has a bit in common with the caller's.
func TestWake(t *testing.T) {
	var table Table[int]
	for id, bits := range []uint32{1, 2, 3, AnyBit} {
		table.Wait(7, &waiter{Thread: uint32(id)}, bits)
	}
	wantThreads(t, "another futex", table.Wake(8, 9, AnyBit))
	wantThreads(t, "bit 1", table.Wake(7, 2, 2), 1, 2)
	wantThreads(t, "the rest", table.Wake(7, 9, AnyBit), 0, 3)
	if !table.Empty() {
		t.Error("an empty queue stays")
	}
}

// TestRequeue: some waiters wake; others move to the second futex and keep their order and bit sets.
func TestRequeue(t *testing.T) {
	var table Table[int]
	for id := range uint32(6) {
		table.Wait(1, &waiter{Thread: id}, 1<<id)
	}
	woken, moved := table.Requeue(1, 2, 1, 3)
	wantThreads(t, "woken", woken, 0)
	if moved != 3 {
		t.Errorf("%d moved", moved)
	}
	wantThreads(t, "at the first", table.Wake(1, 9, AnyBit), 4, 5)
	wantThreads(t, "by bit at the second", table.Wake(2, 9, 1<<2), 2)
	wantThreads(t, "at the second", table.Wake(2, 9, AnyBit), 1, 3)
}

// TestCancel: a waiter that was woken cannot cancel: its wait has succeeded.
func TestCancel(t *testing.T) {
	var table Table[int]
	a, b := &waiter{Thread: 1}, &waiter{Thread: 2}
	table.Wait(1, a, AnyBit)
	table.Wait(1, b, AnyBit)
	table.Wake(1, 1, AnyBit)
	if table.Cancel(a) || !table.Cancel(b) || table.Cancel(b) || !table.Empty() {
		t.Error("cancelled wrongly")
	}
}

// TestOperation: FUTEX_WAKE_OP's arithmetic and comparisons.
func TestOperation(t *testing.T) {
	encode := func(op, cmp, oparg, cmparg uint32) Operation {
		return Operation(op<<28 | cmp<<24 | oparg&0xfff<<12 | cmparg&0xfff)
	}
	minus := func(v int32) uint32 { return uint32(v) }
	for _, test := range []struct {
		operation    Operation
		old, value   uint32
		compares, ok bool
	}{
		{encode(0, 0, 5, 3), 3, 5, true, true},
		{encode(1, 1, minus(-1), 3), 3, 2, false, true},
		{encode(2, 2, 4, 4), 3, 7, true, true},
		{encode(3, 3, 1, 3), 3, 2, true, true},
		{encode(4, 4, 1, 2), 3, 2, true, true},
		{encode(8, 5, 4, minus(-1)), minus(-2), 16, false, true}, // an argument with FUTEX_OP_OPARG_SHIFT: 1<<oparg
		{encode(5, 0, 0, 0), 0, 0, false, false},
		{encode(0, 6, 0, 0), 0, 0, false, false},
	} {
		if value, compares, ok := test.operation.Apply(test.old); value != test.value || compares != test.compares || ok != test.ok {
			t.Errorf("%x of %x: %x, %v, %v", test.operation, test.old, value, compares, ok)
		}
	}
}

// TestPI: the waiter with the highest priority gets a priority-inheritance lock next; among equal priorities, the one
// that came first.
func TestPI(t *testing.T) {
	alive := func(id uint32) bool { return id != 99 }
	for _, test := range []struct {
		word, value uint32
		lock        Lock
	}{
		{0, 5, Acquired}, {OwnerDied, OwnerDied | 5, Acquired}, {5, 5, Deadlock}, {99, 99, NoOwner}, {6, Waiters | 6, MustWait},
	} {
		if value, lock := LockWord(test.word, 5, alive); value != test.value || lock != test.lock {
			t.Errorf("lock %x: %x, %v", test.word, value, lock)
		}
	}
	var table Table[int]
	for id, priority := range []int{1, 3, 3} {
		table.Wait(1, &waiter{Thread: uint32(10 + id), Priority: priority}, AnyBit)
	}
	if _, _, ok := table.Unlock(1, Waiters|5, 6); ok {
		t.Error("unlocked by another")
	}
	word := uint32(Waiters | 5)
	for _, want := range []uint32{Waiters | 11, Waiters | 12, 10, 0} {
		value, next, ok := table.Unlock(1, word, word&Owner)
		if !ok || value != want || next != nil && next.Thread != want&Owner || next == nil && want != 0 {
			t.Errorf("unlock %x: %x, %v, want %x", word, value, ok, want)
		}
		word = value
	}
	table.Wait(1, &waiter{Thread: 20}, AnyBit)
	if value, next := table.DiedPI(1); value != OwnerDied|20 || next.Thread != 20 {
		t.Errorf("after a death: %x", value)
	}
}

// TestRobust: robust futexes of a thread that ends are released, also if the list in the program's memory is damaged.
func TestRobust(t *testing.T) {
	for _, test := range []struct{ word, value uint32 }{{5, OwnerDied}, {Waiters | 5, Waiters | OwnerDied}, {6, 6}, {0, 0}} {
		if value, wake, changed := DiedOwner(test.word, 5); value != test.value || wake != (test.word == Waiters|5) || changed != (test.word&Owner == 5) {
			t.Errorf("%x: %x, %v, %v", test.word, value, wake, changed)
		}
	}
	walk := func(memory map[uint64]uint64) (all []Robust) {
		WalkRobust(100, func(a uint64) (uint64, bool) { v, ok := memory[a]; return v, ok }, func(r Robust) { all = append(all, r) })
		return all
	}
	list := map[uint64]uint64{100: 200, 108: 16, 116: 300, 200: 400 | 1, 400: 100}
	if got := walk(list); !slices.Equal(got, []Robust{{Word: 216}, {Word: 416, PI: true}, {Word: 316, Pending: true}}) {
		t.Errorf("%+v", got)
	}
	list[116] = 200
	if got := walk(list); !slices.Equal(got, []Robust{{Word: 416, PI: true}, {Word: 216, Pending: true}}) {
		t.Errorf("pending and in the list: %+v", got)
	}
	list[400] = 200
	list[116] = 0
	if got := walk(list); len(got) != maxRobust {
		t.Errorf("%d locks in a ring", len(got))
	}
	delete(list, 400)
	if got := walk(list); len(got) != 2 {
		t.Errorf("%d locks in a list that breaks off", len(got))
	}
}

// TestModel: random sequences of operations have the same results as a model that keeps all waiters in one list.
func TestModel(t *testing.T) {
	type entry struct {
		key    int
		bits   uint32
		waiter *waiter
	}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		var table Table[int]
		var model []entry
		take := func(key, n int, bits uint32) (all []*waiter) {
			model = slices.DeleteFunc(model, func(e entry) bool {
				if e.key != key || e.bits&bits == 0 || len(all) >= n {
					return false
				}
				all = append(all, e.waiter)
				return true
			})
			return all
		}
		for step := range 300 {
			key, other, n, bits := r.IntN(4), r.IntN(4), r.IntN(4), 1+r.Uint32N(15)
			var got, want []*waiter
			switch r.IntN(5) {
			case 0, 1:
				w := &waiter{Thread: uint32(step)}
				table.Wait(key, w, bits)
				model = append(model, entry{key, bits, w})
			case 2:
				got, want = table.Wake(key, n, bits), take(key, n, bits)
			case 3:
				got, _ = table.Requeue(key, other, n, 2)
				want = take(key, n, AnyBit)
				for moved := 0; key != other && moved < 2; moved++ {
					at := slices.IndexFunc(model, func(e entry) bool { return e.key == key })
					if at < 0 {
						break
					}
					e := model[at]
					e.key = other
					model = append(slices.Delete(model, at, at+1), e)
				}
			case 4:
				if len(model) > 0 {
					at := r.IntN(len(model))
					table.Cancel(model[at].waiter)
					model = slices.Delete(model, at, at+1)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: %v, want %v", seed, step, threads(got), threads(want))
			}
		}
	}
}
