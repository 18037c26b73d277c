//go:build linux

package unixsock

import (
	"encoding/binary"
	"errors"
	"fmt"

	"loam/link"
)

// Receiving from a stream. Bytes are read into a staging buffer, many short frames at a time, and
// copied from there into frames. A long frame would be copied twice that way. Therefore, once the
// beginning of a frame has been read, one readv reads the rest directly into the frame, and the
// bytes that follow into staging. A long frame is usually followed by another, so after a long
// frame only a little is staged: most of the next frame then also goes directly into its frame.

const (
	stagingLen = 64 << 10
	littleLen  = 2 << 10 // number of bytes read into staging after a long frame
)

var errEOF = errors.New("end of stream")

// reader splits a stream into frames.
type reader struct {
	medium   link.Medium
	header   int
	counters *link.Counters

	staging    []byte
	start, end int // bounds of the bytes in staging that are not parsed

	// partial is the frame being received, or nil between frames. The field got is the
	// number of its bytes that have been received, virtio-net header included.
	partial *link.Frame
	got     int
	long    bool // the last frame was long

	broken error // the stream is not valid from here on
}

// read makes one read. staging must have been parsed, so less than a prefix is left in it.
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

// parse fills fs with complete frames. It returns an error only if it returns no frame. An error
// means that the stream is not valid.
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

// begin allocates the frame for the next prefix. It returns false if there is no complete prefix,
// or an invalid one.
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

// accept removes the virtio-net header from f and checks it. It returns false if f is not valid.
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

// discard frees the partial frame.
func (r *reader) discard() {
	if r.partial != nil {
		r.partial.Free()
		r.partial = nil
	}
}
