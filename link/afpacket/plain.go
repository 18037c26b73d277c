//go:build linux

package afpacket

import (
	"fmt"

	"golang.org/x/sys/unix"

	"loam/link"
	"loam/link/fd"
	"loam/wire"
)

// plain is a queue on a socket without rings. One system call transfers a batch of frames, each
// preceded by its virtio-net header.
type plain struct {
	info     *link.Info
	file     *fd.File
	room     *fd.Room
	counters link.Counters
	header   int // length of the virtio-net header before each frame, or 0

	in  *fd.Receiver
	out writer
}

// writer is the sending half of the queue. It implements link.Sender.
type writer struct {
	q        *plain
	try      func(fd uintptr) // the method tryWrite as a func value, created once
	fs       []*link.Frame
	n        int
	short    bool
	err      error
	messages *fd.Messages
}

// openPlain opens a queue that sends and receives by sendmmsg and recvmmsg, without a shared ring. index is the index of
// the interface.
func openPlain(c Config, info *link.Info, index int, group *fanout) (end, error) {
	s, err := newSocket()
	if err != nil {
		return nil, err
	}
	q := &plain{info: info}
	if !c.NoOffloads {
		q.header = link.VirtioHeaderLen
	}
	err = set(s,
		option{"PACKET_VNET_HDR", unix.PACKET_VNET_HDR, 1, q.header > 0},
		option{"PACKET_QDISC_BYPASS", unix.PACKET_QDISC_BYPASS, 1, c.Bypass},
		option{"PACKET_IGNORE_OUTGOING", unix.PACKET_IGNORE_OUTGOING, 1, true},
		option{"PACKET_AUXDATA", unix.PACKET_AUXDATA, 1, true})
	if err == nil {
		err = receive(s, index, c, group)
	}
	if err != nil {
		unix.Close(s)
		return nil, err
	}
	if q.file, err = fd.New(s, info.Name); err != nil {
		return nil, err
	}
	q.room = fd.NewRoom(q.file, fd.Writable)
	way := fd.Way{Messages: link.BatchSize, Size: info.MaxLen() + 2*wire.VLANTagLen, Control: auxSpace, Take: q.take, Failed: q.failed}
	if q.header > 0 {
		way.Messages, way.Size = 16, link.MaxFrame // few, because each needs a large buffer
	}
	q.in = fd.NewReceiver(q.file, &q.counters, way)
	q.out.q, q.out.try, q.out.messages = q, q.out.tryWrite, fd.NewMessages(link.BatchSize, 0)
	return q, nil
}

// Room implements link.Queue.
func (q *plain) Room() <-chan struct{} { return q.room.C() }

func (q *plain) stats() link.Stats { return q.counters.Stats() }

// Recv implements link.Queue.
func (q *plain) Recv(fs []*link.Frame) (int, error) { return q.in.Recv(fs) }

// failed implements fd.Way.Failed.
func (q *plain) failed(err error) error {
	switch err {
	case unix.EINVAL: // a frame whose metadata cannot be expressed in a virtio-net header
		q.counters.RxError()
		return nil
	case unix.ENETDOWN: // reported once when the interface goes down; frames arrive again when it is up
		return nil
	}
	return fmt.Errorf("%s: %w", q.info.Name, err)
}

// take implements fd.Way.Take.
func (q *plain) take(f *link.Frame, control []byte) bool {
	if f.Len() < q.header+wire.EthernetLen || q.header > 0 && !accept(f) {
		return false
	}
	auxTag(control).putBack(f)
	return true
}

// accept removes the virtio-net header from f and stores it as metadata. It returns false if the
// header is not valid.
func accept(f *link.Frame) bool {
	offload, ok := link.ParseOffload(f.Bytes(), f.Len()-link.VirtioHeaderLen)
	f.TrimFront(link.VirtioHeaderLen)
	f.Offload = offload
	return ok && f.Admit(link.Ethernet)
}

// Send implements link.Queue.
func (q *plain) Send(fs []*link.Frame) (int, error) {
	return link.Transmit(q.info, &q.counters, &q.out, fs)
}

// Send implements link.Sender for frames that the device carries.
func (w *writer) Send(fs []*link.Frame) (int, error) {
	w.fs, w.n, w.short, w.err = fs, 0, false, nil
	err := w.q.file.Do(w.try)
	w.fs = nil
	if err == nil {
		err = w.err
	}
	if w.short {
		w.q.room.Short()
	}
	return w.n, err
}

// tryWrite sends the frames of w.fs in batches, until the socket takes no more or an error ends the
// queue. A frame that was not sent loses its virtio-net header again.
func (w *writer) tryWrite(fd uintptr) {
	for w.n < len(w.fs) && !w.short && w.err == nil {
		batch := w.fs[w.n:min(len(w.fs), w.n+w.messages.Len())]
		for i, f := range batch {
			if w.q.header > 0 {
				offload := f.Offload
				offload.Put(f.Prepend(w.q.header))
			}
			w.messages.Set(i, f.Bytes())
		}
		sent, err := w.messages.Send(fd, 0, len(batch))
		link.FreeAll(batch[:sent])
		for _, f := range batch[sent:] {
			f.TrimFront(w.q.header)
		}
		w.n += sent
		w.judge(err)
	}
}

// judge handles the error of a frame that was not sent. The frame may be kept, skipped, or the reason to end the queue.
func (w *writer) judge(err error) {
	switch err {
	case nil:
	case unix.EAGAIN:
		w.short = true
	case unix.EINVAL, unix.EMSGSIZE: // the kernel rejects the virtio-net header
		w.q.counters.TxError()
		w.skip()
	case unix.ENOBUFS, unix.ENOMEM, unix.ENETDOWN: // the frame is lost, as on a wire
		w.q.counters.TxDropped(1)
		w.skip()
	default:
		w.err = fmt.Errorf("%s: %w", w.q.info.Name, err)
	}
}

// skip frees the first frame not sent yet and moves past it.
func (w *writer) skip() {
	w.fs[w.n].Free()
	w.n++
}

// close closes the socket and frees the buffers. It may be called more than once.
func (q *plain) close() error {
	err := q.file.Close()
	q.room.Close()
	q.in.Close()
	return err
}
