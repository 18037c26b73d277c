// Package thread keeps account of the threads that the Go runtime starts (its
// Ms): which of them are ready to run, what the others wait for and how long, and
// which signals they have to be told. It knows neither registers nor memory nor
// the time: who runs threads asks it what to do.
//
// A thread is Ready, in a queue; Running, on a CPU; or Waiting for a key, until a
// deadline. A key is whatever the two sides agree on: the address of a futex, for
// most. Every waiting thread has a result, which is what the call that it waits in
// returns: it says whether it was woken, interrupted or late.
//
// There are few threads, some dozens, since a goroutine that blocks in a call of
// Loam's holds none; so lists are short and are searched from one end.
//
// Nothing here allocates, and nothing locks: the owner does.
package thread

// ID names a thread. It is also its number for the program (gettid(2)).
type ID int32

// None is no thread.
const None ID = 0

// Max is how many threads there may be at a time.
const Max = 1024

// Never is the deadline of who waits for ever.
const Never = 1<<63 - 1

// State is what a thread does.
type State uint8

// States.
const (
	Unused State = iota
	Ready
	Running
	Waiting
)

// Thread is what is kept of one thread.
type Thread struct {
	State  State
	CPU    int32 // where it runs, if it does
	Waited bool  // it has waited, and has not been given Result yet
	Result int64 // of the call that it waited in

	Mask    uint64 // signals that are held back: bit n-1 for signal n
	Pending uint64 // signals that it has not been told yet

	SignalStack     uint64 // where signal handlers run
	SignalStackSize uint64 // 0: none

	Used    int64 // for how long it has run, in nanoseconds
	Profile Profile
	Sampled bool // the Profile signal that is pending is of its timer
	Alarm   Profile
	Rung    bool // likewise of the Urgent signal and Alarm

	FSBase uint64
	Page   uintptr // the page with its registers, which its owner fills

	next     ID // in the queue, in a bucket, or among the unused
	key      uint64
	deadline int64
	late     int64 // the result when the deadline has passed
}

const buckets = 64

// Table has all threads. The zero value has none.
type Table struct {
	threads [Max + 1]Thread // the first is not used
	used    ID              // no thread has a greater number
	unused  ID              // a list of those below that have ended

	head, tail ID // the queue of those that are ready
	waiting    [buckets]ID
	earliest   int64 // no deadline is before it; 0 means Never
}

// At returns a thread.
func (t *Table) At(id ID) *Thread { return &t.threads[id] }

// Exists reports whether id is a thread.
func (t *Table) Exists(id ID) bool {
	return id > None && id <= t.used && t.threads[id].State != Unused
}

// New makes a thread, which is Running until it is put elsewhere; false if there
// are too many.
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
	page := t.threads[id].Page // kept: the owner uses it again
	t.threads[id] = Thread{State: Running, Page: page}
	return id, true
}

// End forgets a thread that is Running.
func (t *Table) End(id ID) {
	t.threads[id].State = Unused
	t.threads[id].next = t.unused
	t.unused = id
}

// Put makes a Running thread Ready, behind all others.
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

// Take makes the first that is Ready Running; None if there is none.
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

// Wait makes a Running thread wait for a key, until a deadline in nanoseconds;
// late is its result then.
func (t *Table) Wait(id ID, key uint64, deadline, late int64) {
	b := bucket(key)
	th := &t.threads[id]
	th.State, th.key, th.deadline, th.late = Waiting, key, deadline, late
	// Behind all others: who waits longest is woken first.
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

// bucket spreads keys, which are addresses of words more often than not.
func bucket(key uint64) int { return int((key >> 2 * 0x9e3779b97f4a7c15) >> 58) }

// unlink takes a waiting thread out of its bucket.
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

// ready lets a waiting thread go on.
func (t *Table) ready(id ID, result int64) {
	t.unlink(id)
	t.threads[id].Result, t.threads[id].Waited = result, true
	t.Put(id)
}

// Wake makes up to n of the threads that wait for a key Ready, with a result, and
// returns how many there were.
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

// Interrupt makes a thread that is Waiting Ready, with a result.
func (t *Table) Interrupt(id ID, result int64) bool {
	if t.threads[id].State != Waiting {
		return false
	}
	t.ready(id, result)
	return true
}

// Earliest is a time before which no thread has to be woken; Never if none has a
// deadline.
func (t *Table) Earliest() int64 {
	if t.earliest == 0 {
		return Never
	}
	return t.earliest
}

// Expire makes the threads Ready whose deadline is not after now, and returns how
// many there were.
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
