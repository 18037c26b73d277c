//go:build linux

package method

import (
	"fmt"
	"time"

	"loam/link"
)

// queueSender sends frames through a queue of a link.Device.
type queueSender struct {
	counters
	device link.Device
	queue  link.Queue
	frames []*link.Frame
	size   int
}

// newQueueSender returns a sender for the first queue of d. The sender owns d and closes it.
func newQueueSender(d link.Device, c Config) *queueSender {
	return &queueSender{device: d, queue: d.Queues()[0], frames: make([]*link.Frame, c.Batch), size: c.Size}
}

// Layer implements Sender.
func (s *queueSender) Layer() Layer { return Frame }

// Send implements Sender.
func (s *queueSender) Send(n int, fill func(slot []byte) int) (sent int, err error) {
	for asked := 0; asked < n && err == nil; {
		want := min(n-asked, len(s.frames))
		count := s.prepare(want, fill)
		asked += count
		var gone int
		gone, err = s.push(s.frames[:count])
		sent += gone
		if count < want {
			break
		}
	}
	return sent, err
}

func (s *queueSender) prepare(n int, fill func(slot []byte) int) int {
	for i := range n {
		f := link.NewFrame(s.size)
		length := fill(f.Bytes())
		if length == 0 {
			f.Free()
			return i
		}
		f.Resize(length)
		s.frames[i] = f
	}
	return n
}

// push passes a batch to the device, and waits while the device is full. Frames that the device counts as refused are
// not counted as sent.
func (s *queueSender) push(fs []*link.Frame) (sent int, err error) {
	before := s.device.Stats()
	kicks, since := 0, time.Time{}
	for len(fs) > 0 && err == nil {
		var n int
		n, err = s.queue.Send(fs)
		kicks++
		fs = fs[n:]
		switch {
		case n > 0:
			since = time.Time{}
		case err == nil && since.IsZero():
			since = time.Now()
		case err == nil && time.Since(since) > s.patience():
			err = fmt.Errorf("no frame could leave for %v", s.patience())
		}
		if len(fs) > 0 && err == nil {
			s.busy.Add(1)
			s.wait()
		}
	}
	link.FreeAll(fs)
	after := s.device.Stats()
	sent = int(after.TxFrames - before.TxFrames)
	s.took(sent, int(after.TxBytes-before.TxBytes), kicks)
	s.refused.Add(after.TxErrors + after.TxDropped - before.TxErrors - before.TxDropped)
	s.left.Store(s.handed.Load())
	return sent, err
}

func (s *queueSender) wait() {
	timer := time.NewTimer(10 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-s.queue.Room():
	case <-timer.C:
	}
}

// Flush implements Sender. A queue sends synchronously, so there is nothing to wait for.
func (s *queueSender) Flush(time.Duration) error { return nil }

// Close implements Sender.
func (s *queueSender) Close() error { return s.device.Close() }
