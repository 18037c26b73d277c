//go:build linux

package fd

import (
	"sync"
	"syscall"

	"loam/link"
)

// Receiver is the receiving half of a queue over a socket that keeps frames apart:
// several messages by one recvmmsg(2), each into a landing buffer, since nobody
// knows how long it is. What is short is copied out of a large one.
type Receiver struct {
	file     *File
	counters *link.Counters
	way      Way

	try func(fd uintptr) bool // r.tryRecv: made once, since making it allocates
	fs  []*link.Frame         // what Recv passes to tryRecv, and what came of it
	n   int
	err error

	mu       sync.Mutex // guards all below between Recv and Close
	landing  []*link.Frame
	messages *Messages
}

// Way is how a device receives.
type Way struct {
	Messages int // that one call receives at most
	Size     int // of the longest, with what stands in front of the frame
	Control  int // bytes of ancillary data of each

	// EmptyEnds says that a message without bytes is the end of the link, as it is
	// of a SOCK_SEQPACKET socket.
	EmptyEnds bool

	// Take makes what a message consists of a frame; false: it is damaged.
	Take func(f *link.Frame, control []byte) bool

	// Failed returns what Recv fails with for an error of the socket; nil: go on.
	Failed func(err error) error
}

// NewReceiver makes the receiving half of a queue that counts there.
func NewReceiver(f *File, counters *link.Counters, w Way) *Receiver {
	r := &Receiver{
		file: f, counters: counters, way: w,
		landing: make([]*link.Frame, w.Messages), messages: NewMessages(w.Messages, w.Control),
	}
	r.try = r.tryRecv
	return r
}

// Recv is that of link.Queue.
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

// tryRecv receives, and returns false if there is nothing.
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

// land fills landing buffers.
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

// take makes a frame of message i. It returns false at the end of the link.
func (r *Receiver) take(i int) bool {
	length, whole := r.messages.Length(i)
	if length == 0 && r.way.EmptyEnds {
		if r.n == 0 { // else the next Recv finds it again
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

// Close frees the landing buffers. The file has to be closed first.
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
