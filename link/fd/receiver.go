//go:build linux

package fd

import (
	"sync"
	"syscall"

	"loam/link"
)

// Receiver is the receiving half of a queue over a socket that preserves message boundaries. One
// recvmmsg(2) receives several messages. Each goes into a landing buffer of the largest size,
// because the length is not known in advance. A short message is copied out of a large landing
// buffer; a long one keeps the buffer.
type Receiver struct {
	file     *File
	counters *link.Counters
	way      Way

	try func(fd uintptr) bool // r.tryRecv: created once, because creating it allocates
	fs  []*link.Frame         // argument of tryRecv; the fields below are the results
	n   int
	err error

	mu       sync.Mutex // guards all fields below between Recv and Close
	landing  []*link.Frame
	messages *Messages
}

// Way describes how a device receives.
type Way struct {
	Messages int // maximum number of messages received by one call
	Size     int // largest message in bytes, including what precedes the frame in it
	Control  int // bytes of ancillary data of each message

	// EmptyEnds means that an empty message is the end of the link, as on a SOCK_SEQPACKET socket.
	EmptyEnds bool

	// Take converts the message in f and its ancillary data to a frame, in place. It returns false
	// if the message is damaged.
	Take func(f *link.Frame, control []byte) bool

	// Failed returns the error that Recv returns for an error of the socket. nil means to continue.
	Failed func(err error) error
}

// NewReceiver returns the receiving half of a queue. It counts in counters.
func NewReceiver(f *File, counters *link.Counters, w Way) *Receiver {
	r := &Receiver{
		file: f, counters: counters, way: w,
		landing: make([]*link.Frame, w.Messages), messages: NewMessages(w.Messages, w.Control),
	}
	r.try = r.tryRecv
	return r
}

// Recv implements link.Queue.
func (r *Receiver) Recv(fs []*link.Frame) (int, error) {
	r.fs, r.n, r.err = fs, 0, nil
	err := r.file.Read(r.try)
	r.fs = nil
	if err == nil {
		err = r.err
	}
	if err != nil {
		return 0, err
	}
	bytes := 0
	for _, f := range fs[:r.n] {
		bytes += f.Len()
	}
	r.counters.Received(r.n, bytes)
	return r.n, nil
}

// tryRecv receives frames, and returns false if there are none now.
func (r *Receiver) tryRecv(fd uintptr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.n == 0 && r.err == nil {
		n, err := r.land(fd)
		if err == syscall.EAGAIN {
			return false
		}
		if err != nil {
			r.err = r.way.Failed(err)
		}
		for i := range n {
			if !r.take(i) {
				break
			}
		}
	}
	return true
}

// land receives messages into the landing buffers and returns their number.
func (r *Receiver) land(fd uintptr) (int, error) {
	places := min(len(r.fs), len(r.landing))
	for i := range places {
		if r.landing[i] == nil {
			r.landing[i] = link.NewFrame(r.way.Size)
		}
		r.messages.Set(i, r.landing[i].Bytes())
	}
	return r.messages.Receive(fd, places)
}

// take converts message i to a frame. It returns false at the end of the link.
func (r *Receiver) take(i int) bool {
	length, whole := r.messages.Length(i)
	if length == 0 && r.way.EmptyEnds {
		if r.n == 0 { // if frames were read, the next Recv reads the end of the link again
			r.err = link.ErrClosed
		}
		return false
	}
	if !whole {
		r.counters.RxError()
		return true
	}
	f := r.landing[i]
	if length <= link.MaxSmall && r.way.Size > link.MaxSmall {
		f = link.NewFrame(length)
		copy(f.Bytes(), r.landing[i].Bytes())
	} else {
		r.landing[i] = nil
		f.Resize(length)
	}
	if !r.way.Take(f, r.messages.Control(i)) {
		f.Free()
		r.counters.RxError()
		return true
	}
	r.fs[r.n] = f
	r.n++
	return true
}

// Close frees the landing buffers. The file must be closed first.
func (r *Receiver) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, f := range r.landing {
		if f != nil {
			f.Free()
			r.landing[i] = nil
		}
	}
}
