//go:build linux

package unixsock

import (
	"syscall"

	"loam/link"
	"loam/link/fd"
)

// datagramWriter is the sending half: one sendmmsg sends several messages. It implements
// link.Sender.
type datagramWriter struct {
	header int
	file   *fd.File
	room   *fd.Room
	try    func(fd uintptr) // the method tryWrite as a func value, created once

	peer      string // argument of tryWrite; the fields below are the results
	connected bool   // the socket is connected to peer

	fs       []*link.Frame // argument of tryWrite, and below its results
	n        int
	err      error
	messages *fd.Messages
}

// Send implements link.Queue.
func (d *datagram) Send(fs []*link.Frame) (n int, err error) {
	if d.out.connect() {
		n, err = link.Transmit(d.info, &d.counters, &d.out, fs)
	}
	if err == link.ErrClosed && d.out.peer != "" && d.file.Do(func(uintptr) {}) == nil {
		d.out.connected, err = false, nil // the peer is gone; another one may open the same path
	}
	if d.out.connected || d.out.peer == "" || err != nil {
		return n, err
	}
	d.counters.TxDropped(len(fs) - n)
	link.FreeAll(fs[n:])
	return len(fs), nil
}

// connect connects to the peer if necessary. It returns false if the peer does not exist now.
func (w *datagramWriter) connect() bool {
	if w.peer == "" || w.connected {
		return true
	}
	closed := w.file.Do(func(fd uintptr) {
		w.connected = syscall.Connect(int(fd), &syscall.SockaddrUnix{Name: w.peer}) == nil
	})
	return w.connected || closed != nil // if the file is closed, Send returns the error
}

// Send implements link.Sender for frames that the device carries.
func (w *datagramWriter) Send(fs []*link.Frame) (n int, err error) {
	w.fs, w.n, w.err = fs, 0, nil
	err = w.file.Do(w.try)
	w.fs = nil
	if err == nil {
		err = w.err
	}
	if err == nil && w.n < len(fs) {
		w.room.Short()
	}
	return w.n, err
}

// tryWrite sends the frames of w.fs in batches, until the socket takes no more or fails. A frame that
// was not sent loses its virtio-net header again.
func (w *datagramWriter) tryWrite(fd uintptr) {
	for w.n < len(w.fs) {
		batch := w.fs[w.n:min(len(w.fs), w.n+maxMessages)]
		for i, f := range batch {
			if w.header > 0 {
				offload := f.Offload
				offload.Put(f.Prepend(w.header))
			}
			w.messages.Set(i, f.Bytes())
		}
		sent, err := w.messages.Send(fd, 0, len(batch))
		link.FreeAll(batch[:sent])
		for _, f := range batch[sent:] {
			f.TrimFront(w.header)
		}
		w.n += sent
		switch {
		case err == nil:
		case err == syscall.EAGAIN, err == syscall.ENOBUFS:
			return
		case gone(err):
			w.err = link.ErrClosed
			return
		default:
			w.err = err
			return
		}
	}
}
