//go:build linux

package unixsock

import (
	"fmt"
	"sync"
	"syscall"

	"loam/link"
	"loam/link/fd"
)

// maxMessages is how many messages go through one call. A receiver's queue holds
// no more than net.unix.max_dgram_qlen, 10 by default.
const maxMessages = 16

// datagram is a queue over a socket that keeps frames apart. Its two halves have
// nothing in common but the socket.
type datagram struct {
	info     *link.Info
	file     *fd.File
	room     *fd.Room
	counters link.Counters
	header   int  // bytes of virtio-net header in front of each frame
	tells    bool // SOCK_SEQPACKET: a message without bytes is the end

	in  datagramReader
	out datagramWriter
}

func newDatagram(f *fd.File, info *link.Info, header int, peer string) *datagram {
	d := &datagram{info: info, file: f, room: fd.NewRoom(f, fd.Writable), header: header}
	d.in.try, d.in.messages = d.tryRecv, fd.NewMessages(maxMessages, 0)
	d.out.file, d.out.room, d.out.header, d.out.peer = f, d.room, header, peer
	d.out.try, d.out.messages = d.out.tryWrite, fd.NewMessages(maxMessages, 0)
	f.Do(func(fd uintptr) { // a descriptor that is no socket fails later, at every call
		kind, _ := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TYPE)
		d.tells = kind == syscall.SOCK_SEQPACKET
	})
	return d
}

// Room implements link.Queue.
func (d *datagram) Room() <-chan struct{} { return d.room.C() }

func (d *datagram) stats() link.Stats { return d.counters.Stats() }

// close may be called more than once.
func (d *datagram) close() error {
	err := d.file.Close()
	d.room.Close()
	d.in.discard()
	return err
}

// datagramReader is the receiving half: several messages by one recvmmsg, each
// into a large landing buffer, since nobody knows how long it is. A short one is
// copied out.
type datagramReader struct {
	try func(fd uintptr) bool // d.tryRecv: made once, since making it allocates
	fs  []*link.Frame         // what Recv passes to tryRecv, and what came of it
	n   int
	err error

	mu       sync.Mutex // guards all below between Recv and close
	landing  [maxMessages]*link.Frame
	messages *fd.Messages
}

// Recv implements link.Queue.
func (d *datagram) Recv(fs []*link.Frame) (int, error) {
	r := &d.in
	r.fs, r.n, r.err = fs, 0, nil
	err := d.file.Read(r.try)
	r.fs = nil
	if err == nil {
		err = r.err
	}
	if err != nil {
		d.file.Close()
		d.room.Hang()
		return 0, err
	}
	bytes := 0
	for _, f := range fs[:r.n] {
		bytes += f.Len()
	}
	d.counters.Received(r.n, bytes)
	return r.n, nil
}

func (d *datagram) tryRecv(fd uintptr) bool {
	r := &d.in
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.n == 0 && r.err == nil {
		n, err := r.receive(fd)
		switch {
		case err == syscall.EAGAIN:
			return false
		case err == syscall.ECONNREFUSED && d.out.peer != "": // about something that was sent
		case gone(err):
			r.err = link.ErrClosed
		case err != nil:
			r.err = fmt.Errorf("%s: %w", d.info.Name, err)
		}
		for i := 0; i < n && r.err == nil; i++ {
			d.take(i)
		}
	}
	return true
}

// receive fills landing buffers.
func (r *datagramReader) receive(fd uintptr) (int, error) {
	places := min(len(r.fs), maxMessages)
	for i := range places {
		if r.landing[i] == nil {
			r.landing[i] = link.NewFrame(link.MaxFrame)
		}
		r.messages.Set(i, r.landing[i].Bytes())
	}
	return r.messages.Receive(fd, places)
}

// take makes a frame of message i.
func (d *datagram) take(i int) {
	r := &d.in
	length, whole := r.messages.Length(i)
	if length == 0 && d.tells {
		if r.n == 0 { // else the next Recv finds it again
			r.err = link.ErrClosed
		}
		return
	}
	if !whole {
		d.counters.RxError()
		return
	}
	f := r.landing[i]
	if length <= link.MaxSmall {
		f = link.NewFrame(length)
		copy(f.Bytes(), r.landing[i].Bytes())
	} else {
		r.landing[i] = nil
		f.Resize(length)
	}
	if !accept(f, d.header, d.info.Medium) {
		d.counters.RxError()
		return
	}
	r.fs[r.n] = f
	r.n++
}

// discard frees the landing buffers.
func (r *datagramReader) discard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, f := range r.landing {
		if f != nil {
			f.Free()
			r.landing[i] = nil
		}
	}
}
