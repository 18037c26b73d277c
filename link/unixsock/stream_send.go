//go:build linux

package unixsock

import (
	"sync"
	"syscall"

	"loam/link"
	"loam/link/fd"
)

// Sending into a stream. One sendmsg sends many frames and may stop anywhere. A frame counts as
// taken once part of it has been sent. The rest of that frame, pending, is sent first by the next
// Send. The goroutine that waits for room also sends it, so that it does not have to wait for a
// Send.

// writer is the sending half. It implements link.Sender.
type writer struct {
	header int
	file   *fd.File
	room   *fd.Room
	try    func(fd uintptr) // the method tryWrite as a func value, created once

	mu      sync.Mutex    // guards all fields below; Send, retry and discard run on different goroutines
	pending *link.Frame   // frame that was sent in part; its Bytes are the rest
	fs      []*link.Frame // argument of tryWrite; n and err are its results
	n       int
	err     error
	vector  vector
}

// Send implements link.Sender for frames that the device carries.
func (w *writer) Send(fs []*link.Frame) (n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fs, w.n, w.err = fs, 0, nil
	err = w.file.Do(w.try)
	w.fs = nil
	if err == nil {
		err = w.err
	}
	if err == nil && (w.n < len(fs) || w.pending != nil) {
		w.room.Short()
	}
	return w.n, err
}

// tryWrite sends the pending frame, and then as much of fs as the socket takes.
func (w *writer) tryWrite(fd uintptr) {
	for w.n < len(w.fs) && w.err == nil {
		if !w.flush(fd) || !w.writeSome(fd) {
			return
		}
	}
}

// flush sends the pending frame and reports whether it has been sent completely.
func (w *writer) flush(fd uintptr) bool {
	for w.pending != nil {
		w.vector.reset()
		w.vector.add(w.pending.Bytes())
		n, err := w.vector.send(fd)
		if !w.judge(err) {
			return false
		}
		w.pending.TrimFront(n)
		if w.pending.Len() == 0 {
			w.pending.Free()
			w.pending = nil
		}
	}
	return true
}

// writeSome sends frames from the front of fs with one call, and reports whether the caller may
// continue.
func (w *writer) writeSome(fd uintptr) bool {
	batch := w.fs[w.n:min(len(w.fs), w.n+maxVector)]
	w.vector.reset()
	for _, f := range batch {
		putPrefix(f, w.header)
		w.vector.add(f.Bytes())
	}
	sent, err := w.vector.send(fd)
	for _, f := range batch {
		switch {
		case sent >= f.Len():
			sent -= f.Len()
			f.Free()
			w.n++
		case sent > 0: // part of the frame was sent
			f.Offload = link.Offload{} // the rest of the frame is sent as bytes, without another header
			f.TrimFront(sent)
			w.pending, sent = f, 0
			w.n++
		default:
			f.TrimFront(prefixLen + w.header)
		}
	}
	return w.judge(err)
}

// judge records an error that ends the connection. It reports whether err is nil.
func (w *writer) judge(err error) bool {
	switch {
	case err == nil:
		return true
	case err == syscall.EAGAIN, err == syscall.ENOBUFS:
	case gone(err):
		w.err = link.ErrClosed
	default:
		w.err = err
	}
	return false
}

// retry is the retry function of the Room. The Room's goroutine calls it.
func (w *writer) retry(descriptor uintptr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = nil
	if !w.flush(descriptor) {
		return w.err != nil // if there is an error, Send returns it
	}
	return fd.Writable(descriptor)
}

// discard frees the pending frame without sending it.
func (w *writer) discard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending != nil {
		w.pending.Free()
		w.pending = nil
	}
}
