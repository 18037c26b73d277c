//go:build linux

package unixsock

import (
	"sync"
	"syscall"

	"loam/link"
	"loam/link/fd"
)

// Sending into a stream: many frames by one sendmsg, which may stop anywhere. A
// frame of which a part has gone counts as taken; the rest of it, pending, goes
// first, by the next Send or, so that it does not have to wait for one, by the
// goroutine that waits for room.

// writer is the sending half. It implements link.Sender.
type writer struct {
	header int
	file   *fd.File
	room   *fd.Room
	try    func(fd uintptr) // w.tryWrite

	mu      sync.Mutex    // guards all below: Send, retry and discard meet here
	pending *link.Frame   // the rest of it is in use
	fs      []*link.Frame // what Send passes to tryWrite, and what came of it
	n       int
	err     error
	vector  vector
}

// Send takes frames that the device carries.
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

// tryWrite writes what is pending and then as much of fs as the socket takes.
func (w *writer) tryWrite(fd uintptr) {
	for w.n < len(w.fs) && w.err == nil {
		if !w.flush(fd) || !w.writeSome(fd) {
			return
		}
	}
}

// flush writes what is pending and reports whether it has gone.
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

// writeSome writes frames from the front of fs by one call, and reports whether
// it may go on.
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
		case sent > 0: // a part has gone
			f.Offload = link.Offload{} // it is bytes now
			f.TrimFront(sent)
			w.pending, sent = f, 0
			w.n++
		default:
			f.TrimFront(prefixLen + w.header)
		}
	}
	return w.judge(err)
}

// judge keeps an error that ends the connection, and reports whether there was
// none at all.
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

// retry is called by the goroutine that waits for room.
func (w *writer) retry(descriptor uintptr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = nil
	if !w.flush(descriptor) {
		return w.err != nil // let Send find out
	}
	return fd.Writable(descriptor)
}

// discard frees what is pending, for good.
func (w *writer) discard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending != nil {
		w.pending.Free()
		w.pending = nil
	}
}
