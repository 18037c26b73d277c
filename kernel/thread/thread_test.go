package thread

import (
	"math/rand/v2"
	"runtime"
	"testing"
)

func newThreads(t *testing.T, n int) (*Table, []ID) {
	t.Helper()
	tab := new(Table)
	var ids []ID
	for range n {
		if tab.Full() {
			extend(t, tab)
		}
		id, ok := tab.New()
		if !ok {
			t.Fatal("no thread")
		}
		ids = append(ids, id)
	}
	return tab, ids
}

// extend gives a table the memory for ChunkThreads more threads.
func extend(t *testing.T, tab *Table) {
	memory := new([ChunkThreads]Thread)
	t.Cleanup(func() { runtime.KeepAlive(memory) })
	tab.Extend(addressOf(memory))
}

// want checks that Take returns the given threads in order, and then none.
func want(t *testing.T, tab *Table, ids ...ID) {
	t.Helper()
	for _, id := range append(ids, None) {
		if got := tab.Take(0); got != id {
			t.Fatalf("takes %d, want %d", got, id)
		}
	}
}

// Threads are taken in the order in which they became ready.
func TestQueue(t *testing.T) {
	tab, ids := newThreads(t, 3)
	want(t, tab)
	tab.Put(ids[2])
	tab.Put(ids[0])
	if !tab.HasReady() || tab.Take(1) != ids[2] {
		t.Error("the first is not first")
	}
	tab.Put(ids[2])
	want(t, tab, ids[0], ids[2])
}

// A CPU first takes a thread that was moved to it. The others join the queue. It takes no thread that was moved to another CPU.
func TestMove(t *testing.T) {
	tab, ids := newThreads(t, 4)
	tab.Put(ids[0])
	tab.Move(ids[1], 63)
	if tab.HasMoved(0) || !tab.HasMoved(63) || !tab.HasReady() {
		t.Error("a thread is ready for another CPU")
	}
	tab.Move(ids[2], 63)
	tab.Move(ids[3], 0)
	for _, id := range []ID{ids[1], ids[0], ids[2], None} {
		if got := tab.Take(63); got != id || tab.HasMoved(63) {
			t.Errorf("CPU 63 takes %d, want %d", got, id)
		}
	}
	want(t, tab, ids[3])
}

// Wake wakes only threads that wait for its key, the longest waiting first.
func TestWake(t *testing.T) {
	tab, ids := newThreads(t, 5)
	const a, b = 0x1000, 0x1000 + buckets*4
	for i, id := range ids {
		tab.Wait(id, []uint64{a, b}[i%2], Never, -110)
	}
	if n := tab.Wake(a, 2, 7); n != 2 || tab.At(ids[0]).Result != 7 {
		t.Errorf("%d, result %d", n, tab.At(ids[0]).Result)
	}
	want(t, tab, ids[0], ids[2])
	if n := tab.Wake(b, 9, 0); n != 2 {
		t.Errorf("%d", n)
	}
	want(t, tab, ids[1], ids[3])
	if tab.Wake(b, 1, 0) != 0 || !tab.Interrupt(ids[4], -4) || tab.Interrupt(ids[4], -4) {
		t.Error("an interrupt is not one")
	}
	want(t, tab, ids[4])
}

// A wait ends at its deadline, and not earlier.
func TestExpire(t *testing.T) {
	tab, ids := newThreads(t, 3)
	tab.Wait(ids[0], 1, 300, -110)
	tab.Wait(ids[1], 2, Never, -110)
	tab.Wait(ids[2], 3, 200, -110)
	if tab.Earliest() != 200 || tab.Expire(199) != 0 {
		t.Error("too early")
	}
	if tab.Expire(200) != 1 || tab.At(ids[2]).Result != -110 || tab.Earliest() != 300 {
		t.Error("not in time")
	}
	tab.Wake(1, 1, 0) // the deadline of a wait that has ended has no effect
	if tab.Expire(1000) != 0 || tab.Earliest() != Never {
		t.Errorf("earliest %d", tab.Earliest())
	}
	want(t, tab, ids[2], ids[0])
}

// Without more memory there are ChunkThreads-1 threads, and each added piece of memory makes room for ChunkThreads
// more.
func TestExtend(t *testing.T) {
	tab := new(Table)
	for want := range 3 {
		n := 0
		for !tab.Full() {
			id, ok := tab.New()
			if !ok {
				t.Fatal("no thread")
			}
			tab.At(id).Used = int64(id)
			n++
		}
		if has := ChunkThreads; n != has && (want != 0 || n != has-1) {
			t.Errorf("there is room for %d", n)
		}
		if _, ok := tab.New(); ok {
			t.Error("a thread without a record")
		}
		extend(t, tab)
	}
	for id := ID(1); id <= tab.Last(); id++ {
		if tab.At(id).Used != int64(id) {
			t.Errorf("record %d was overwritten", id)
		}
	}
}

// The table is never larger than Max.
func TestTooMany(t *testing.T) {
	tab, ids := newThreads(t, Max)
	if _, ok := tab.New(); ok {
		t.Error("one more is made")
	}
	tab.At(ids[5]).Page = 4096
	tab.End(ids[5])
	if tab.Count() != Max-1 || tab.Exists(ids[5]) || tab.Exists(None) || tab.Exists(Max+1) || !tab.Exists(ids[6]) {
		t.Error("Exists is wrong")
	}
	if id, ok := tab.New(); !ok || id != ids[5] || tab.At(id).Page != 4096 {
		t.Errorf("%d, %v", id, ok)
	}
}

// After any sequence of operations, a thread is in exactly one list.
func TestRandom(t *testing.T) {
	tab, ids := newThreads(t, 20)
	rng := rand.New(rand.NewPCG(5, 6))
	for now := int64(1); now < 20000; now++ {
		switch id := ids[rng.IntN(len(ids))]; rng.IntN(6) {
		case 0:
			tab.Wake(rng.Uint64N(6), rng.IntN(3), 0)
		case 1:
			tab.Expire(now)
		case 2:
			tab.Interrupt(id, 0)
		case 3:
			tab.Take(0)
		default:
			if tab.At(id).State != Running {
				break
			}
			if rng.IntN(3) == 0 {
				tab.Put(id)
				break
			}
			tab.Wait(id, rng.Uint64N(6), []int64{now + rng.Int64N(50), Never}[rng.IntN(2)], 0)
		}
		tab.check(t)
	}
}

func (t *Table) check(tt *testing.T) {
	tt.Helper()
	seen := map[ID]State{}
	for id := t.ready.head; id != None; id = t.At(id).next {
		seen[id] = Ready
	}
	for _, l := range t.waiting {
		for id := l.head; id != None; id = t.At(id).next {
			seen[id] = Waiting
		}
	}
	timed := map[ID]bool{}
	for id := t.timed; id != None; id = t.At(id).later {
		timed[id] = true
	}
	for id := ID(1); id <= t.used; id++ {
		want := t.At(id).State
		if timed[id] != (want == Waiting && t.At(id).deadline != Never) {
			tt.Fatalf("thread %d is in the list of deadlines: %v", id, timed[id])
		}
		if got, queued := seen[id]; queued != (want == Ready || want == Waiting) || queued && got != want {
			tt.Fatalf("thread %d is %d and in a list of %d", id, want, got)
		}
		if want == Waiting && t.At(id).deadline < t.Earliest() {
			tt.Fatalf("thread %d has to be woken at %d, before %d", id, t.At(id).deadline, t.Earliest())
		}
	}
}

// A deadline before the start of the clock has passed: the thread is woken by the next Expire, whatever deadlines others have.
func TestPastDeadlines(t *testing.T) {
	for _, deadline := range []int64{0, -1, -1 << 63, 1} {
		for _, other := range []int64{Never, 1000} {
			tab, ids := newThreads(t, 2)
			tab.Wait(ids[0], 4, other, -1)
			tab.Wait(ids[1], 8, deadline, -2)
			if n := tab.Expire(1); n != 1 || tab.At(ids[1]).Result != -2 || tab.At(ids[0]).State != Waiting {
				t.Errorf("deadline %d: %d threads are woken, result %d", deadline, n, tab.At(ids[1]).Result)
			}
			if got := tab.Earliest(); got != other {
				t.Errorf("deadline %d: the next is %d, want %d", deadline, got, other)
			}
		}
	}
}
