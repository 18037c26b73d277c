package link

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Frames come from two pools and return to them: one pool for frames of an ordinary MTU, one for
// the largest GSO frames. A frame has exactly one owner at a time. Passing a frame on also passes
// on the duty to Free it.

// Headroom is the number of bytes that a new frame leaves free in front of its data. It is enough
// for a virtio-net header, an Ethernet header with two VLAN tags, the longest IPv4 header and the
// longest TCP header.
const Headroom = 160

// Buffer sizes of the two pools in bytes, headroom included.
const (
	smallSize = 2048
	largeSize = 65535 + 4096
)

// MaxSmall is the largest number of bytes that a small frame holds after its headroom. NewFrame
// takes a large buffer for anything longer.
const MaxSmall = smallSize - Headroom

// MaxFrame is the largest number of bytes that any frame holds after its headroom.
const MaxFrame = largeSize - Headroom

// Frame is one frame with its offload metadata. Bytes returns the bytes in use. The space in front
// of them is for the headers that lower layers prepend.
type Frame struct {
	Offload
	buf        []byte
	start, end int
	ledger     *ledger     // the ledger that counted the frame last; nil: none
	freed      atomic.Bool // the ledger has already counted the Free of this frame
}

// ledger counts the frames made since one call of Track.
type ledger struct{ outstanding atomic.Int64 }

var (
	small = sync.Pool{New: func() any { return &Frame{buf: make([]byte, smallSize)} }}
	large = sync.Pool{New: func() any { return &Frame{buf: make([]byte, largeSize)} }}

	tracking atomic.Pointer[ledger] // nil: frames are not counted
)

// NewFrame returns a frame with n bytes in use after its headroom. The contents are undefined. It
// panics if n is above MaxFrame.
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

// FrameOf returns a frame with a copy of b after its headroom. It panics if b is longer than MaxFrame.
func FrameOf(b []byte) *Frame {
	f := NewFrame(len(b))
	copy(f.Bytes(), b)
	return f
}

// add counts the new frame f.
func (l *ledger) add(f *Frame) {
	l.outstanding.Add(1)
	f.ledger = l
	f.freed.Store(false)
}

// remove counts the Free of f if this ledger counted f when it was made, and overwrites its buffer.
// It panics if f was already freed.
func (l *ledger) remove(f *Frame) {
	if f.ledger == l {
		if f.freed.Swap(true) {
			panic("link: frame freed twice")
		}
		l.outstanding.Add(-1)
	}
	poison(f.buf)
}

// Free returns the frame to its pool. The caller must not use the frame or its bytes afterwards.
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

// poison overwrites b with a pattern. It copies the written part over and over, doubling it: the
// race detector treats a copy as one access, and a loop over the bytes as 70,000.
func poison(b []byte) {
	b[0] = 0xdb
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// FreeAll frees every frame of fs and sets the elements of the slice to nil.
func FreeAll(fs []*Frame) {
	for i, f := range fs {
		f.Free()
		fs[i] = nil
	}
}

// Bytes returns the bytes in use.
func (f *Frame) Bytes() []byte { return f.buf[f.start:f.end] }

// Len returns len(Bytes()).
func (f *Frame) Len() int { return f.end - f.start }

// Prepend takes n more bytes in front into use and returns them. It adjusts the offsets in the
// offload metadata. It panics if the headroom is shorter than n.
func (f *Frame) Prepend(n int) []byte {
	if n > f.start {
		panic("link: no headroom")
	}
	f.start -= n
	f.shift(n)
	return f.buf[f.start : f.start+n]
}

// TrimFront removes the first n bytes from use and adjusts the offsets in the offload metadata. It
// panics if n is above Len.
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

// Resize sets the number of bytes in use, counted from the current front. It panics if n is above
// Cap.
func (f *Frame) Resize(n int) {
	if n < 0 || n > f.Cap() {
		panic("link: resize beyond the buffer")
	}
	f.end = f.start + n
}

// Cap returns the largest argument that Resize allows.
func (f *Frame) Cap() int { return len(f.buf) - f.start }

// Track turns frame accounting for tests on or off, and starts the count again at zero. While it is
// on, outstanding frames are counted, a second Free of a frame panics, and the bytes of a freed
// frame are overwritten. Frames made before the call are never counted, because programs of an
// earlier test may still hold some.
func Track(on bool) {
	if on {
		tracking.Store(new(ledger))
	} else {
		tracking.Store(nil)
	}
}

// Outstanding returns the number of frames made since Track and not yet freed. It returns 0 if
// accounting is off.
func Outstanding() int {
	if l := tracking.Load(); l != nil {
		return int(l.outstanding.Load())
	}
	return 0
}
