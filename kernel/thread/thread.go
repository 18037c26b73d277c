// Package thread records the threads that the Go runtime starts (its Ms): which are ready to run, which wait, for
// what and until when, and which signals are pending. It knows neither registers nor memory nor the time. The
// kernel runs the threads and asks this package which one to run.
//
// A thread is Ready, in a queue; Running, on a CPU; or Waiting for a key until a deadline. A key is any number that
// the waiting and the waking side agree on; most often it is the address of a futex. A waiting thread gets a
// result, which is the result of the call in which it waits. The result says whether it was woken, interrupted or
// timed out.
//
// There are only some dozens of threads, because a goroutine that blocks in a Loam call does not hold one. So the
// lists are short, and linear searches are fast.
//
// Nothing here allocates or locks: the caller provides the locking.
package thread

// ID identifies a thread. Programs see it as the thread ID (gettid(2)).
type ID int32

// None is the ID of no thread.
const None ID = 0

// Max is the maximum number of threads at a time.
const Max = 1024

// Never is a deadline that never passes.
const Never = 1<<63 - 1

// State is the state of a thread.
type State uint8

// Values of State.
const (
	Unused State = iota
	Ready
	Running
	Waiting
)

// Thread is the record of one thread.
type Thread struct {
	State  State
	CPU    int32 // number of its CPU, if it is Running
	Waited bool  // Result has not been delivered to the thread yet
	Result int64 // result of the call in which it waited

	Mask    uint64 // blocked signals: bit n-1 for signal n
	Pending uint64 // pending signals, likewise

	SignalStack     uint64 // the alternate signal stack
	SignalStackSize uint64 // 0: none

	Used    int64 // CPU time, in nanoseconds
	Profile Profile
	Sampled bool // the pending Profile signal is from its timer
	Alarm   Profile
	Rung    bool // the pending Urgent signal is from Alarm

	FSBase uint64
	Page   uintptr // address of the page with its registers, set by the owner

	next     ID // in the queue, in a bucket, or in the list of unused threads
	key      uint64
	deadline int64
	late     int64 // the result at the deadline
}

const buckets = 64

// Table holds all threads. The zero value is an empty table.
type Table struct {
	threads [Max + 1]Thread // index 0 is not used
	used    ID              // the largest ID used so far
	unused  ID              // list of the IDs up to used whose threads have ended

	head, tail ID // queue of the Ready threads
	waiting    [buckets]ID
	earliest   int64 // no deadline is earlier; 0 means Never
}

// At returns the thread with an ID. The pointer stays valid; the record is reused after End.
func (t *Table) At(id ID) *Thread { return &t.threads[id] }

// Exists reports whether id is the ID of a thread.
func (t *Table) Exists(id ID) bool {
	return id > None && id <= t.used && t.threads[id].State != Unused
}

// New adds a thread in state Running; false if there are too many. A reused record keeps its Page.
func (t *Table) New() (ID, bool) {
	id := t.unused
	switch {
	case id != None:
		t.unused = t.threads[id].next
	case t.used < Max:
		t.used++
		id = t.used
	default:
		return None, false
	}
	page := t.threads[id].Page // the owner reuses it
	t.threads[id] = Thread{State: Running, Page: page}
	return id, true
}

// End removes a Running thread.
func (t *Table) End(id ID) {
	t.threads[id].State = Unused
	t.threads[id].next = t.unused
	t.unused = id
}

// Put makes a Running thread Ready, at the end of the queue.
func (t *Table) Put(id ID) {
	t.threads[id].State = Ready
	t.threads[id].next = None
	if t.head == None {
		t.head = id
	} else {
		t.threads[t.tail].next = id
	}
	t.tail = id
}

// Take makes the first Ready thread Running and returns it; None if there is none.
func (t *Table) Take() ID {
	id := t.head
	if id != None {
		t.head = t.threads[id].next
		t.threads[id].State = Running
	}
	return id
}

// HasReady reports whether Take would return a thread.
func (t *Table) HasReady() bool { return t.head != None }

// Wait makes a Running thread wait for a key until a deadline, in nanoseconds. late is its result if the deadline
// passes.
func (t *Table) Wait(id ID, key uint64, deadline, late int64) {
	b := bucket(key)
	th := &t.threads[id]
	th.State, th.key, th.deadline, th.late = Waiting, key, deadline, late
	// At the end of the list: the longest waiting thread is woken first.
	th.next = None
	if last := t.waiting[b]; last == None {
		t.waiting[b] = id
	} else {
		for t.threads[last].next != None {
			last = t.threads[last].next
		}
		t.threads[last].next = id
	}
	if deadline < t.Earliest() {
		t.earliest = deadline
	}
}

// bucket hashes a key. Most keys are addresses of 32-bit words.
func bucket(key uint64) int { return int((key >> 2 * 0x9e3779b97f4a7c15) >> 58) }

// unlink removes a waiting thread from its bucket.
func (t *Table) unlink(id ID) {
	b := bucket(t.threads[id].key)
	if t.waiting[b] == id {
		t.waiting[b] = t.threads[id].next
		return
	}
	before := t.waiting[b]
	for t.threads[before].next != id {
		before = t.threads[before].next
	}
	t.threads[before].next = t.threads[id].next
}

// ready makes a waiting thread Ready, with a result.
func (t *Table) ready(id ID, result int64) {
	t.unlink(id)
	t.threads[id].Result, t.threads[id].Waited = result, true
	t.Put(id)
}

// Wake makes up to n threads that wait for a key Ready, with a result. It returns how many it has woken.
func (t *Table) Wake(key uint64, n int, result int64) int {
	woken := 0
	for id := t.waiting[bucket(key)]; id != None && woken < n; {
		next := t.threads[id].next
		if t.threads[id].key == key {
			t.ready(id, result)
			woken++
		}
		id = next
	}
	return woken
}

// Interrupt makes a Waiting thread Ready, with a result. It reports false for a thread in another state.
func (t *Table) Interrupt(id ID, result int64) bool {
	if t.threads[id].State != Waiting {
		return false
	}
	t.ready(id, result)
	return true
}

// Earliest returns a lower bound of all deadlines; Never if there is none.
func (t *Table) Earliest() int64 {
	if t.earliest == 0 {
		return Never
	}
	return t.earliest
}

// Expire makes the threads whose deadline has passed at now Ready, with their late results. It returns how many
// there were.
func (t *Table) Expire(now int64) int {
	if now < t.Earliest() {
		return 0
	}
	woken, earliest := 0, int64(Never)
	for id := ID(1); id <= t.used; id++ {
		switch th := &t.threads[id]; {
		case th.State != Waiting:
		case th.deadline <= now:
			t.ready(id, th.late)
			woken++
		default:
			earliest = min(earliest, th.deadline)
		}
	}
	t.earliest = earliest
	return woken
}
