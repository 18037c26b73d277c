package link

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Frames come from two pools, one for a frame of an ordinary MTU and one for
// the largest GSO frame, and go back to them. A frame has one owner at a time;
// passing it on passes the duty to Free it.

// Headroom is how many bytes a new frame leaves free in front, enough for a
// virtio-net header, Ethernet with two tags, the longest IPv4 header and the
// longest TCP header.
const Headroom = 160

// Sizes of the buffers of the two pools in bytes, headroom included.
const (
	smallSize = 2048
	largeSize = 65535 + 4096
)

// MaxSmall is the most that a small frame carries behind its headroom. NewFrame
// takes a large buffer for anything above.
const MaxSmall = smallSize - Headroom

// MaxFrame is the most that any frame carries behind its headroom.
const MaxFrame = largeSize - Headroom

// Frame is one frame with its offload metadata. The bytes in use are Bytes();
// the space in front of them is for headers that lower layers prepend.
type Frame struct {
	Offload
	buf        []byte
	start, end int
	ledger     *ledger     // that it was last counted in; nil: in none
	freed      atomic.Bool // it was taken out of that again
}

// ledger counts the frames made from one call of Track on.
type ledger struct{ outstanding atomic.Int64 }

var (
	small = sync.Pool{New: func() any { return &Frame{buf: make([]byte, smallSize)} }}
	large = sync.Pool{New: func() any { return &Frame{buf: make([]byte, largeSize)} }}

	tracking atomic.Pointer[ledger] // nil: frames are not counted
)

// NewFrame returns a frame with n bytes in use behind Headroom, contents
// undefined. It panics if n is above MaxFrame.
func NewFrame(n int) *Frame {
	if n > MaxFrame {
		panic(fmt.Sprintf("link: frame of %d bytes", n))
	}
	pool := &small
	if n > MaxSmall {
		pool = &large
	}
	f := pool.Get().(*Frame)
	f.Offload = Offload{}
	f.start, f.end = Headroom, Headroom+n
	if l := tracking.Load(); l != nil {
		l.add(f)
	}
	return f
}

// add counts a frame that was made.
func (l *ledger) add(f *Frame) {
	l.outstanding.Add(1)
	f.ledger = l
	f.freed.Store(false)
}

// remove counts a frame that is freed, if it was counted here when it was made.
func (l *ledger) remove(f *Frame) {
	if f.ledger == l {
		if f.freed.Swap(true) {
			panic("link: frame freed twice")
		}
		l.outstanding.Add(-1)
	}
	poison(f.buf)
}

// Free gives the frame back. The caller must not touch it, or its bytes, again.
func (f *Frame) Free() {
	if l := tracking.Load(); l != nil {
		l.remove(f)
	}
	if len(f.buf) == smallSize {
		small.Put(f)
	} else {
		large.Put(f)
	}
}

// poison overwrites b, doubling what is written already: copy is one step for the
// race detector, a loop over the bytes is 70,000.
func poison(b []byte) {
	b[0] = 0xdb
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// FreeAll frees every frame of fs and clears the slice's elements.
func FreeAll(fs []*Frame) {
	for i, f := range fs {
		f.Free()
		fs[i] = nil
	}
}

// Bytes are the bytes in use.
func (f *Frame) Bytes() []byte { return f.buf[f.start:f.end] }

// Len is len(Bytes()).
func (f *Frame) Len() int { return f.end - f.start }

// Prepend takes n more bytes in front into use and returns these. Offsets in
// the metadata move along.
func (f *Frame) Prepend(n int) []byte {
	if n > f.start {
		panic("link: no headroom")
	}
	f.start -= n
	f.shift(n)
	return f.buf[f.start : f.start+n]
}

// TrimFront takes the first n bytes out of use.
func (f *Frame) TrimFront(n int) {
	if n > f.Len() {
		panic("link: trim beyond the frame")
	}
	f.start += n
	f.shift(-n)
}

func (f *Frame) shift(n int) {
	if f.NeedsChecksum {
		f.CsumStart = uint16(int(f.CsumStart) + n)
	}
	if f.GSO != GSONone {
		f.HeaderLen = uint16(int(f.HeaderLen) + n)
	}
}

// Resize sets the number of bytes in use, counted from the present front. It
// panics if the buffer is too small: see Cap.
func (f *Frame) Resize(n int) {
	if n < 0 || n > f.Cap() {
		panic("link: resize beyond the buffer")
	}
	f.end = f.start + n
}

// Cap is the most that Resize allows.
func (f *Frame) Cap() int { return len(f.buf) - f.start }

// Track switches the accounting that tests use on or off, and begins it anew: frames
// outstanding are counted, a double Free panics, and freed bytes are overwritten. A
// frame that was made before counts neither now nor when it is freed: programs of an
// earlier test may still hold some.
func Track(on bool) {
	if on {
		tracking.Store(new(ledger))
	} else {
		tracking.Store(nil)
	}
}

// Outstanding is the number of frames made and not yet freed since Track.
func Outstanding() int {
	if l := tracking.Load(); l != nil {
		return int(l.outstanding.Load())
	}
	return 0
}
