package block

import "time"

// Op is the operation of a request.
type Op uint8

// Values of Op: what a request asks the device to do.
const (
	Read        Op = iota // Read fills Data from the device
	Write                 // Write stores Data on the device
	Flush                 // makes earlier writes durable: see the package comment
	Discard               // the contents of Length bytes are no longer needed
	WriteZeroes           // WriteZeroes makes Length bytes read as zeros
	Ops                   // the number of operations
)

var opNames = [Ops]string{"read", "write", "flush", "discard", "write-zeroes"}

func (o Op) String() string {
	if o < Ops {
		return opNames[o]
	}
	return "unknown operation"
}

// Writes reports whether the operation changes sectors.
func (o Op) Writes() bool { return o == Write || o == Discard || o == WriteZeroes }

// Flags modify the operation of a request.
type Flags uint8

// Flags of requests.
const (
	// FUA (force unit access) makes a Write or WriteZeroes durable before it
	// completes. Every device accepts it.
	FUA Flags = 1 << iota
	// KeepAllocated makes WriteZeroes keep the space of the sectors allocated, so that a later
	// write cannot fail with ErrNoSpace. Without it a device may free the space.
	KeepAllocated
)

// Request is one operation. The user allocates it, and may reuse it once it has come back.
//
// From Submit until the request comes back, the request and the memory of Data belong to the
// device. The kernel does not read or write that memory during a Read, and does not change it during
// a Write. A process may do both during direct I/O: what it reads, and the content of the memory
// after a Read, or of the sectors after a Write, are then undefined. So a driver reads the memory of
// a Write at most once, and relies on no content. Once the request has come back, with or without an
// error, the device touches neither again. (The only exception is a device that has failed, ignores
// its reset, and is on a bus that cannot end its access to memory. The error of such a request is
// ErrHeld, too.)
type Request struct {
	Op     Op
	Flags  Flags
	Offset int64 // in bytes, a multiple of Info.LogicalSector; ignored by Flush
	Length int64 // for Discard and WriteZeroes, in bytes: a positive multiple of Info.LogicalSector
	// Data is the memory for Read and Write, in order. The length of each piece is a positive
	// multiple of Info.LogicalSector. A piece that does not start at a multiple of Info.MemoryAlign
	// costs a copy. Pieces must not overlap in a Read.
	Data [][]byte
	// To receives the request when it has completed. It must not be nil.
	To *Completions
	// Tag is for the user. Devices and wrappers ignore it.
	Tag any

	// Err is the result, set before the request comes back. Submit ignores it.
	Err error

	began time.Time // when the device began the request: see Counters.Begin
	by    *Counters // the counters that have begun the request and not ended it; nil: none
	next  *Request  // the next request in the List that holds this one
}

// Bytes returns the length of the range that the request covers.
func (r *Request) Bytes() int64 {
	switch r.Op {
	case Read, Write:
		n := int64(0)
		for _, p := range r.Data {
			n += int64(len(p))
		}
		return n
	case Flush:
		return 0
	}
	return r.Length
}

// Complete returns the request to its user. Only the device that holds the request calls it, and
// only once.
func (r *Request) Complete(err error) {
	r.Err = err
	r.To.push(r)
}

// List is a first-in first-out list of requests, linked through the requests
// themselves: it allocates nothing. A request is in at most one list. The zero value
// is empty. A List has one owner.
type List struct {
	head, tail *Request
	n          int
}

// Len returns the number of requests in the list.
func (l *List) Len() int { return l.n }

// Push appends a request to the list.
func (l *List) Push(r *Request) {
	r.next = nil
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.next = r
	}
	l.tail = r
	l.n++
}

// Front returns the first request without removing it; nil if the list is empty.
func (l *List) Front() *Request { return l.head }

// Pop removes and returns the first request; nil if the list is empty.
func (l *List) Pop() *Request {
	r := l.head
	if r == nil {
		return nil
	}
	if l.head = r.next; l.head == nil {
		l.tail = nil
	}
	r.next = nil
	l.n--
	return r
}

// CompleteAll empties the list, and returns each of its requests to its user with the same error.
func (l *List) CompleteAll(err error) {
	for r := l.Pop(); r != nil; r = l.Pop() {
		r.Complete(err)
	}
}
