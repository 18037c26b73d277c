// Package thread records the threads that the Go runtime starts (its Ms): which threads are ready to run, which wait,
// for what and until when, and which signals are pending. The package does not access registers, memory or clocks. The
// kernel runs the threads, and calls this package to choose the next one.
//
// A thread is Ready, in a queue for all CPUs or for one; Running, on a CPU; or Waiting for a key until a deadline. A key is any number on which
// the waiting thread and the thread that wakes it agree; most often it is the address of a futex. A waiting thread gets
// a result, which its blocking call returns: it was woken, interrupted, or timed out.
//
// Most programs have some dozens of threads, because a goroutine that blocks in a Loam call does not hold a thread.
// Programs that lock many goroutines to threads have thousands. So the cost of an operation does not grow with the
// number of threads. The exception is Expire, which looks at all threads that wait until a deadline.
//
// Nothing in this package allocates or locks. The caller provides the locking, and memory for records beyond the first
// chunk (Extend).
package thread

// ID identifies a thread. Programs see it as the thread ID (gettid(2)).
type ID int32

// None means no thread; no thread has this ID.
const None ID = 0

// Max is the maximum number of threads at a time. Programs reach other limits first: the Go runtime allows 10,000
// threads, and memory is limited. Linux has 32,768 process IDs by default.
const Max = 1<<16 - 1

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
	CPU    int32 // number of the CPU that runs the thread, in state Running
	Waited bool  // Result has not been delivered to the thread yet
	Result int64 // result of the call in which the thread waited

	Mask    uint64 // blocked signals: bit n-1 for signal n
	Pending uint64 // pending signals, as a bit set like Mask
	Sought  uint64 // bit set of the signals for which the thread waits in rt_sigtimedwait(2)
	Info    uint64 // address of the siginfo that rt_sigtimedwait(2) fills in; 0: none

	SignalStack     uint64 // address of the alternate signal stack
	SignalStackSize uint64 // size of the alternate signal stack in bytes; 0: there is none

	Used    int64 // CPU time of the thread in nanoseconds
	Profile Profile
	Sampled bool // the pending SIGPROF was sent by the timer Profile
	Alarm   Profile
	Rung    bool // the pending SIGURG was sent by the timer Alarm

	FSBase uint64
	Page   uintptr        // address of the page with the thread's registers; set by package kernel
	Name   [nameSize]byte // name set by prctl(PR_SET_NAME), with a terminating NUL

	next, before  ID // neighbours in the queue of Ready threads or in a bucket; next also links unused records
	later, sooner ID // neighbours in the list of threads with a deadline; the list is not sorted
	key           uint64
	deadline      int64
	late          int64 // result of the waiting call if the deadline passes
}

// nameSize is the size of a thread's name in bytes, with the NUL (prctl(2)).
const nameSize = 16

const buckets = 256

// CPUs is the maximum number of CPUs.
const CPUs = 64

// list is a list of threads.
type list struct{ head, tail ID }

// Table holds all threads. The zero value is an empty table with room for ChunkThreads-1 threads.
type Table struct {
	first  [ChunkThreads]Thread              // records of the lowest IDs; index 0 is not used
	chunks [(Max + 1) / ChunkThreads]uintptr // addresses of the chunks with the other records; the first element is not used
	room   ID                                // IDs from ChunkThreads up to room-1 have a record in a chunk
	used   ID                                // highest ID used so far
	ended  int                               // length of the list of unused IDs
	unused ID                                // list of the IDs up to used whose threads have ended

	ready    list       // queue of the threads that are Ready and that any CPU may run
	moved    [CPUs]list // queues of the threads that are Ready for one CPU, by its number (Move)
	waiting  [buckets]list
	timed    ID    // list of the Waiting threads with a deadline
	earliest int64 // no deadline of a thread is earlier than this; 0 means Never
}

// At returns the thread with an ID. The pointer stays valid; the record is reused after End.
func (t *Table) At(id ID) *Thread {
	if id < ChunkThreads {
		return &t.first[id]
	}
	return &chunkAt(t.chunks[id/ChunkThreads])[id%ChunkThreads]
}

// Full reports whether the next New needs more memory, which the caller adds with Extend.
func (t *Table) Full() bool {
	return t.unused == None && t.used < Max && t.used+1 >= max(t.room, ChunkThreads)
}

// Extend adds zeroed memory of ChunkSize bytes for records. The memory stays in use. It has no effect if Full reports
// false.
func (t *Table) Extend(memory uintptr) {
	if t.Full() {
		t.room = max(t.room, ChunkThreads)
		t.chunks[t.room/ChunkThreads] = memory
		t.room += ChunkThreads
	}
}

// Exists reports whether id is the ID of a thread.
func (t *Table) Exists(id ID) bool {
	return id > None && id <= t.used && t.At(id).State != Unused
}

// Last returns the highest ID used so far. No thread has a larger one.
func (t *Table) Last() ID { return t.used }

// Count returns the number of threads.
func (t *Table) Count() int { return int(t.used) - t.ended }

// New adds a thread in state Running. It returns false if there are Max threads, or if the table is Full. A reused
// record keeps its Page.
func (t *Table) New() (ID, bool) {
	id := t.unused
	switch {
	case id != None:
		t.unused = t.At(id).next
		t.ended--
	case t.used < Max && !t.Full():
		t.used++
		id = t.used
	default:
		return None, false
	}
	th := t.At(id)
	*th = Thread{State: Running, Page: th.Page} // package kernel uses the page again for the new thread
	return id, true
}

// End removes a Running thread.
func (t *Table) End(id ID) {
	th := t.At(id)
	th.State = Unused
	th.next = t.unused
	t.unused = id
	t.ended++
}

// add appends a thread to a list.
func (t *Table) add(l *list, id ID) {
	th := t.At(id)
	th.next, th.before = None, l.tail
	if l.tail == None {
		l.head = id
	} else {
		t.At(l.tail).next = id
	}
	l.tail = id
}

// remove takes a thread out of a list.
func (t *Table) remove(l *list, id ID) {
	th := t.At(id)
	if th.before == None {
		l.head = th.next
	} else {
		t.At(th.before).next = th.next
	}
	if th.next == None {
		l.tail = th.before
	} else {
		t.At(th.next).before = th.before
	}
}

// Put makes a Running thread Ready, at the end of the queue.
func (t *Table) Put(id ID) {
	t.At(id).State = Ready
	t.add(&t.ready, id)
}

// Move makes a Running thread Ready. Only one CPU, with the given number, takes it, until the CPU has taken another such thread.
func (t *Table) Move(id ID, cpu int32) {
	t.At(id).State = Ready
	t.add(&t.moved[cpu], id)
}

// Take makes a Ready thread Running, for a CPU, and returns it: the first that was moved to the CPU, or else the first of the
// queue for all CPUs. It returns None if there is none. The other threads that were moved to the CPU join the queue: no interrupt
// makes the CPU take them, and if they still need it, they move again.
func (t *Table) Take(cpu int32) ID {
	l := &t.moved[cpu]
	if !t.HasMoved(cpu) {
		l = &t.ready
	}
	id := l.head
	if id != None {
		t.remove(l, id)
		t.At(id).State = Running
	}
	for l = &t.moved[cpu]; t.HasMoved(cpu); {
		other := l.head
		t.remove(l, other)
		t.add(&t.ready, other)
	}
	return id
}

// HasReady reports whether a thread is Ready that any CPU may run.
func (t *Table) HasReady() bool { return t.ready.head != None }

// HasMoved reports whether a thread is Ready that was moved to a CPU.
func (t *Table) HasMoved(cpu int32) bool { return t.moved[cpu].head != None }

// Wait makes a Running thread wait for a key until a deadline, in nanoseconds. The parameter late is the thread's
// result if the deadline passes. Of the threads that wait for a key, the one that has waited longest is woken first.
func (t *Table) Wait(id ID, key uint64, deadline, late int64) {
	deadline = max(deadline, 1) // earlier deadlines have passed, too; earliest does not use 0 for a time
	th := t.At(id)
	th.State, th.key, th.deadline, th.late = Waiting, key, deadline, late
	t.add(&t.waiting[bucket(key)], id)
	if deadline == Never {
		return
	}
	th.sooner, th.later = None, t.timed
	if t.timed != None {
		t.At(t.timed).sooner = id
	}
	t.timed = id
	if deadline < t.Earliest() {
		t.earliest = deadline
	}
}

// bucket returns the index in waiting for a key, by a multiplicative hash. The lowest two bits of the key are dropped,
// since most keys are addresses of 32-bit words.
func bucket(key uint64) int { return int((key >> 2 * 0x9e3779b97f4a7c15) >> 56) }

// wake makes a waiting thread Ready. result is the value that the thread's waiting call returns.
func (t *Table) wake(id ID, result int64) {
	th := t.At(id)
	t.remove(&t.waiting[bucket(th.key)], id)
	if th.deadline != Never {
		if th.sooner == None {
			t.timed = th.later
		} else {
			t.At(th.sooner).later = th.later
		}
		if th.later != None {
			t.At(th.later).sooner = th.sooner
		}
	}
	th.Result, th.Waited = result, true
	t.Put(id)
}

// Wake makes up to n threads Ready that wait for a key, and sets their result. It returns how many it has woken.
func (t *Table) Wake(key uint64, n int, result int64) int {
	woken := 0
	for id := t.waiting[bucket(key)].head; id != None && woken < n; {
		next := t.At(id).next
		if t.At(id).key == key {
			t.wake(id, result)
			woken++
		}
		id = next
	}
	return woken
}

// Interrupt makes a Waiting thread Ready and sets its result. It reports false for a thread in another state.
func (t *Table) Interrupt(id ID, result int64) bool {
	if t.At(id).State != Waiting {
		return false
	}
	t.wake(id, result)
	return true
}

// WaitsFor reports whether a thread waits for a key.
func (t *Table) WaitsFor(id ID, key uint64) bool {
	return t.At(id).State == Waiting && t.At(id).key == key
}

// Earliest returns a time that is not after any deadline; Never if no thread has a deadline.
func (t *Table) Earliest() int64 {
	if t.earliest == 0 {
		return Never
	}
	return t.earliest
}

// Expire makes each thread Ready whose deadline is not after now. Its wait ends with the result for a timeout. Expire returns
// the number of these threads.
func (t *Table) Expire(now int64) int {
	if now < t.Earliest() {
		return 0
	}
	woken, earliest := 0, int64(Never)
	for id := t.timed; id != None; {
		th, late := t.At(id), id
		id = th.later
		if th.deadline > now {
			earliest = min(earliest, th.deadline)
			continue
		}
		t.wake(late, th.late)
		woken++
	}
	t.earliest = earliest
	return woken
}
