//go:build linux

package unixsock

import (
	"encoding/binary"
	"errors"
	"fmt"

	"loam/link"
)

// Receiving from a stream. Bytes are read into a staging buffer, many short
// frames at a time, and copied out into frames. A long frame would be copied
// twice that way: so when the beginning of a frame has been seen, the rest of it
// is read straight into the frame, and what follows into staging, by one readv.
// Behind a long frame usually comes another: then only a little is staged, so
// that most of that one goes straight into its frame as well.

const (
	stagingLen = 64 << 10
	littleLen  = 2 << 10 // staged while frames are long
)

var errEOF = errors.New("end of stream")

// reader takes a stream apart.
type reader struct {
	medium   link.Medium
	header   int
	counters *link.Counters

	staging    []byte
	start, end int // of what is in staging and not parsed

	// partial is the frame whose beginning has been seen, nil between frames; got
	// is how much of it is there, the virtio-net header included.
	partial *link.Frame
	got     int
	long    bool // the last frame was long

	broken error // the stream makes no sense from here on
}

// read reads once. Staging has been parsed: what is left in it is less than a
// prefix.
func (r *reader) read(fd uintptr) error {
	r.end = copy(r.staging, r.staging[r.start:r.end])
	r.start = 0
	room := r.staging[r.end:]
	if r.long {
		room = room[:littleLen]
	}
	var rest []byte
	if r.partial != nil {
		rest = r.partial.Bytes()[r.got:]
	}
	n, err := readv(fd, rest, room)
	if err != nil {
		return err
	}
	if n == 0 {
		return errEOF
	}
	direct := min(n, len(rest))
	r.got += direct
	r.end += n - direct
	return nil
}

// parse fills fs with the frames that are complete. An error comes alone, and
// means that the stream makes no sense.
func (r *reader) parse(fs []*link.Frame) (n int, err error) {
	for n < len(fs) {
		if r.partial == nil {
			if !r.begin() {
				break
			}
		}
		if r.got < r.partial.Len() {
			copied := copy(r.partial.Bytes()[r.got:], r.staging[r.start:r.end])
			r.got += copied
			r.start += copied
		}
		if r.got < r.partial.Len() {
			return n, nil
		}
		f := r.partial
		r.partial, r.long = nil, f.Len() > link.MaxSmall
		if accept(f, r.header, r.medium) {
			fs[n] = f
			n++
		} else {
			f.Free()
			r.counters.RxError()
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, r.broken
}

// begin makes the frame that the next prefix announces; false: there is none.
func (r *reader) begin() bool {
	b := r.staging[r.start:r.end]
	if len(b) < prefixLen || r.broken != nil {
		return false
	}
	length := binary.BigEndian.Uint32(b)
	if length > link.MaxFrame {
		r.counters.RxError()
		r.broken = fmt.Errorf("a frame of %d bytes was announced: %w", length, link.ErrClosed)
		return false
	}
	r.partial, r.got = link.NewFrame(int(length)), 0
	r.start += prefixLen
	return true
}

// accept takes the virtio-net header off f and checks it; false: f makes no sense.
func accept(f *link.Frame, header int, m link.Medium) bool {
	length := f.Len() - header
	if length < max(1, m.HeaderLen()) {
		return false
	}
	if header == 0 {
		return true
	}
	offload, ok := link.ParseOffload(f.Bytes(), length)
	f.TrimFront(header)
	f.Offload = offload
	return ok && f.Admit(m)
}

// discard frees what is on the way.
func (r *reader) discard() {
	if r.partial != nil {
		r.partial.Free()
		r.partial = nil
	}
}
