package block

// Op is the operation of a request.
type Op uint8

// Operations.
const (
	Read        Op = iota // fills Data
	Write                 // stores Data
	Flush                 // makes earlier writes durable: see the package comment
	Discard               // the contents of Length bytes are not needed any more
	WriteZeroes           // Length bytes read as zeros
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

// Flags modify a request.
type Flags uint8

// Flags.
const (
	// FUA (force unit access) makes a Write or WriteZeroes durable before it
	// completes. Every device accepts it.
	FUA Flags = 1 << iota
	// KeepAllocated has WriteZeroes keep the space of the sectors allocated, so that
	// a later write cannot fail with ErrNoSpace. Without it a device may free it.
	KeepAllocated
)

// Request is one operation. The user allocates it, and may use it again once it has
// come back.
//
// From Submit until it comes back, the request and the memory of Data belong to the
// device. During a Read nobody else reads or writes that memory; during a Write
// nobody changes it. Once the request has come back, with or without an error, the
// device does not touch either again. (The only exception is a device that has
// failed, ignores its reset and is on no bus that could keep it from memory.)
type Request struct {
	Op     Op
	Flags  Flags
	Offset int64 // in bytes, a multiple of Info.LogicalSector; ignored by Flush
	Length int64 // of Discard and WriteZeroes, in bytes, a positive multiple of the sector
	// Data is the memory of Read and Write, in order. Each piece is a positive
	// multiple of Info.LogicalSector long. A piece that does not start at a multiple
	// of Info.MemoryAlign costs a copy. Pieces must not overlap in a Read.
	Data [][]byte
	// To receives the request when it is done. It must not be nil.
	To *Completions
	// Tag is the user's own. Devices and wrappers do not look at it.
	Tag any

	// Err is the result, set before the request comes back. Submit ignores it.
	Err error

	next *Request // in the List that holds the request
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

// Complete sends the request back. Only the device that holds the request calls it,
// once.
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

// Push appends a request.
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

// CompleteAll empties the list and sends every request back with the same error.
func (l *List) CompleteAll(err error) {
	for r := l.Pop(); r != nil; r = l.Pop() {
		r.Complete(err)
	}
}
