// Package trace wraps a device and writes every frame that passes it to a pcapng file, which
// Wireshark and tshark can open.
//
// Frames are written as they cross the device. A GSO frame is one packet, and a checksum that is
// left to the device appears wrong in the file. (Wireshark does not verify checksums by default.) A
// frame that Send does not take, or that the device would reject, is not written.
//
// Output is buffered: it is written in pieces of 64 kB, and the rest within a second. The Send or
// Recv that fills the buffer writes it, so a slow writer slows down the traffic. A write error ends
// the trace but not the traffic.
package trace

import (
	"errors"
	"fmt"
	"io"
	"os"

	"loam/link"
)

// Device passes all calls on to the wrapped device and writes its frames to a trace.
type Device struct {
	link.Device
	queues []link.Queue
	log    *log
	file   io.Closer // closed by Close, or nil
}

// New wraps d and writes the trace to w. If the function failed is not nil, it is called
// once when writing fails. Otherwise Close returns the error.
func New(d link.Device, w io.Writer, failed func(error)) *Device {
	t := &Device{Device: d, log: newLog(w, d.Info(), failed)}
	for i, q := range d.Queues() {
		t.queues = append(t.queues, &queue{Queue: q, number: i, info: d.Info(), log: t.log})
	}
	return t
}

// Create wraps d and writes the trace to a new file at path. Close closes the file. failed is used
// as in New.
func Create(d link.Device, path string, failed func(error)) (*Device, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	t := New(d, f, failed)
	t.file = f
	return t, nil
}

// Queues implements link.Device.
func (t *Device) Queues() []link.Queue { return t.queues }

// Close implements link.Device. It closes the wrapped device and then writes the rest of the trace.
func (t *Device) Close() error {
	err := errors.Join(t.Device.Close(), t.log.close())
	if t.file != nil {
		if e := t.file.Close(); !errors.Is(e, os.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// queue records the frames of a queue of the wrapped device. Its method Room is the wrapped queue's.
type queue struct {
	link.Queue
	number int
	info   link.Info
	log    *log
}

// Recv implements link.Queue.
func (q *queue) Recv(fs []*link.Frame) (int, error) {
	n, err := q.Queue.Recv(fs)
	if n > 0 {
		q.log.received(q.number, fs[:n])
	}
	return n, err
}

// Send implements link.Queue.
func (q *queue) Send(fs []*link.Frame) (n int, err error) { return q.log.send(q, fs) }
