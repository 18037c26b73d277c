//go:build linux

package unixsock

import (
	"fmt"
	"syscall"

	"loam/link"
	"loam/link/fd"
)

// maxMessages is the most messages of one system call. The kernel queues at most
// net.unix.max_dgram_qlen for a receiver, 10 by default.
const maxMessages = 16

// datagram is a queue over a socket that preserves message boundaries. Its two halves share only
// the socket.
type datagram struct {
	info     *link.Info
	file     *fd.File
	room     *fd.Room
	counters link.Counters

	in  *fd.Receiver
	out datagramWriter
}

func newDatagram(f *fd.File, info *link.Info, header int, peer string) *datagram {
	d := &datagram{info: info, file: f, room: fd.NewRoom(f, fd.Writable)}
	way := fd.Way{
		Messages: maxMessages, Size: link.MaxFrame, Failed: d.failed,
		Take: func(f *link.Frame, _ []byte) bool { return accept(f, header, info.Medium) },
	}
	f.Do(func(fd uintptr) { // on a descriptor that is not a socket, later calls fail
		kind, _ := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TYPE)
		way.EmptyEnds = kind == syscall.SOCK_SEQPACKET
	})
	d.in = fd.NewReceiver(f, &d.counters, way)
	d.out.file, d.out.room, d.out.header, d.out.peer = f, d.room, header, peer
	d.out.try, d.out.messages = d.out.tryWrite, fd.NewMessages(maxMessages, 0)
	return d
}

// Room implements link.Queue.
func (d *datagram) Room() <-chan struct{} { return d.room.C() }

func (d *datagram) stats() link.Stats { return d.counters.Stats() }

// close closes the socket and frees the buffers. It may be called more than once.
func (d *datagram) close() error {
	err := d.file.Close()
	d.room.Close()
	d.in.Close()
	return err
}

// Recv implements link.Queue.
func (d *datagram) Recv(fs []*link.Frame) (int, error) {
	n, err := d.in.Recv(fs)
	if err != nil {
		d.file.Close()
		d.room.Hang()
	}
	return n, err
}

// failed implements fd.Way.Failed.
func (d *datagram) failed(err error) error {
	switch {
	case err == syscall.ECONNREFUSED && d.out.peer != "": // an error of an earlier send
		return nil
	case gone(err):
		return link.ErrClosed
	}
	return fmt.Errorf("%s: %w", d.info.Name, err)
}
