// Package trace wraps a device and writes every frame that passes it to a
// pcapng file, which Wireshark and tshark open.
//
// Frames are written as they cross the device: a GSO frame is one packet, and a
// checksum that is left to the device looks wrong there. (Wireshark does not
// check by default.) A frame that Send does not take, or that the device would
// refuse, is not written.
//
// Bytes are gathered and written 64 kB at a time, and what is left within a
// second. Writing happens in the Send or Recv that fills the buffer: a slow
// writer slows the traffic. One that fails ends the trace and not the traffic.
package trace

import (
	"errors"
	"fmt"
	"io"
	"os"

	"loam/link"
)

// Device passes on all that it is asked for, and writes it down.
type Device struct {
	link.Device
	queues []link.Queue
	log    *log
	file   io.Closer // closed by Close, or nil
}

// New wraps d and writes to w. failed, if it is not nil, is called once, when
// writing fails; otherwise Close returns that error.
func New(d link.Device, w io.Writer, failed func(error)) *Device {
	t := &Device{Device: d, log: newLog(w, d.Info(), failed)}
	for i, q := range d.Queues() {
		t.queues = append(t.queues, &queue{Queue: q, number: i, info: d.Info(), log: t.log})
	}
	return t
}

// Create wraps d and writes to a new file at path, which Close closes.
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

// Close implements link.Device: it closes the wrapped device too, after writing
// what is left.
func (t *Device) Close() error {
	err := errors.Join(t.Device.Close(), t.log.close())
	if t.file != nil {
		if e := t.file.Close(); !errors.Is(e, os.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// queue is a queue of the wrapped device; Room is its own.
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
