package linktest

import (
	"testing"

	"loam/link"
)

// window is the number of frames that the suite keeps in transit. It is small enough that no device
// loses any.
const window = 32

// flow is one direction between two queues.
type flow struct {
	from, to link.Queue
	medium   link.Medium
	inFlight int
	in, out  []*link.Frame // buffers that are reused
}

func newFlow(from, to link.Device, queue int) *flow {
	return &flow{
		from: from.Queues()[queue], to: to.Queues()[queue], medium: from.Info().Medium,
		in: make([]*link.Frame, link.BatchSize), out: make([]*link.Frame, 0, link.BatchSize),
	}
}

// exchange creates frames 0 to count-1 with the function make and sends them in batches
// of the given size. It passes each frame that arrives to the function check, in the
// order of arrival, and returns when all have arrived.
func (f *flow) exchange(t *testing.T, count, batch int, make func(i int) *link.Frame, check func(i int, f *link.Frame)) {
	t.Helper()
	sent, arrived := 0, 0
	for arrived < count {
		for sent < count && len(f.out) < batch && f.inFlight+len(f.out) < window {
			f.out = append(f.out, make(sent))
			sent++
		}
		short := !f.send(t)
		if f.inFlight == 0 && short {
			wait(t, f.from)
			continue
		}
		for _, frame := range f.recv(t) {
			check(arrived, frame)
			arrived++
		}
	}
}

// send sends the frames in the field out, and reports whether all were taken.
func (f *flow) send(t *testing.T) bool {
	t.Helper()
	n, err := f.from.Send(f.out)
	if err != nil {
		t.Fatalf("Send: %v", err)
	}
	f.inFlight += n
	f.out = f.out[:copy(f.out, f.out[n:])]
	return len(f.out) == 0
}

// recv waits for frames and returns them.
func (f *flow) recv(t *testing.T) []*link.Frame {
	t.Helper()
	n, err := f.to.Recv(f.in)
	if err != nil {
		t.Fatalf("Recv: %v", err)
	}
	if n == 0 {
		t.Fatal("Recv returned neither a frame nor an error")
	}
	f.inFlight -= n
	return f.in[:n]
}

// wait waits until Room is signalled.
func wait(t *testing.T, q link.Queue) {
	t.Helper()
	if _, open := <-q.Room(); !open {
		t.Fatal("Room was closed before the device")
	}
}

// push sends all of fs while another goroutine receives. If the device is closed, it returns the
// number of frames taken until then.
func push(q link.Queue, fs []*link.Frame) (int, error) {
	sent := 0
	for sent < len(fs) {
		n, err := q.Send(fs[sent:])
		sent += n
		if err != nil {
			return sent, err
		}
		if sent < len(fs) {
			<-q.Room()
		}
	}
	return sent, nil
}
