package probe

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loam/gen/method"
	"loam/gen/probe/target"
	"loam/internal/siphash"
	"loam/link"
	"loam/link/pipe"
	"loam/wire"
)

// An in-memory network: the frames of a run go through a pipe to a goroutine that answers for every address. Time
// is fake, so waiting takes no real time.

var path4 = Path{
	Source:    netip.MustParseAddr("192.168.7.1"),
	SourceMAC: wire.MAC{2, 0, 0, 0, 0, 1}, NextHopMAC: wire.MAC{2, 0, 0, 0, 0, 2},
}

var path6 = Path{
	Source:    netip.MustParseAddr("fd77::1"),
	SourceMAC: wire.MAC{2, 0, 0, 0, 0, 1}, NextHopMAC: wire.MAC{2, 0, 0, 0, 0, 2},
}

func addresses(t testing.TB, list ...string) *target.Set {
	t.Helper()
	var rs []target.Range
	for _, s := range list {
		r, err := target.ParseRange(s)
		if err != nil {
			t.Fatal(err)
		}
		rs = append(rs, r)
	}
	s, err := target.NewSet(rs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// config returns the configuration of a run over addresses. Tests modify it.
func config(t testing.TB, kind Kind, list ...string) *Config {
	c := &Config{
		Path: path4, Kind: kind, Addresses: addresses(t, list...),
		ID: 0x4c6f, Key: siphash.Key{K0: 1, K1: 2}, Seed: 3,
	}
	if !c.Addresses.Is4() {
		c.Path = path6
	}
	if kind.HasPorts() {
		c.Ports, c.LocalPorts = []uint16{443, 53}, Ports{61000, 61063}
	}
	return c
}

// pipeSender is a method.Sender on one end of a pipe.
type pipeSender struct {
	queue  link.Queue
	handed atomic.Uint64
	fail   error // if not nil, Send returns this error from the next batch on
}

func (s *pipeSender) Layer() method.Layer { return method.Frame }

func (s *pipeSender) Send(n int, fill func([]byte) int) (int, error) {
	if s.fail != nil {
		return 0, s.fail
	}
	for i := range n {
		f := link.NewFrame(method.DefaultSize)
		size := fill(f.Bytes())
		if size == 0 {
			f.Free()
			return i, nil
		}
		f.Resize(size)
		for {
			if sent, err := s.queue.Send([]*link.Frame{f}); err != nil || sent == 1 {
				break
			}
			<-s.queue.Room()
		}
		s.handed.Add(1)
	}
	return n, nil
}

func (s *pipeSender) Flush(time.Duration) error { return nil }
func (s *pipeSender) Counters() method.Counters { return method.Counters{Handed: s.handed.Load()} }
func (s *pipeSender) Close() error              { return nil }

// pipeReceiver receives frames from a goroutine that reads the pipe.
type pipeReceiver struct {
	in   chan *link.Frame // the goroutine that reads the pipe sends frames, waits while the channel is full, and closes it when the device is closed
	look time.Duration    // delay before each poll of the receiver
	most int              // largest number of frames waiting at a poll
}

func (r *pipeReceiver) Receive(timeout time.Duration, got func([]byte, int64)) (n int, err error) {
	time.Sleep(r.look)
	r.most = max(r.most, len(r.in))
	late := time.NewTimer(timeout)
	defer late.Stop()
	for {
		select {
		case f, ok := <-r.in:
			if !ok {
				return n, nil
			}
			got(f.Bytes(), 0)
			f.Free()
			n++
			continue
		default:
		}
		if n > 0 {
			return n, nil
		}
		select {
		case f, ok := <-r.in:
			if !ok {
				return 0, nil
			}
			got(f.Bytes(), 0)
			f.Free()
			return 1, nil
		case <-late.C:
			return 0, nil
		}
	}
}

func (r *pipeReceiver) Drops() uint64 { return 0 }
func (r *pipeReceiver) Close() error  { return nil }

// network simulates the network and its hosts.
type network struct {
	t     *testing.T
	delay time.Duration
	// answer returns the answers to a frame; nil means silence.
	answer func(frame []byte) [][]byte
	look   time.Duration // interval between two polls of the receiver
	most   int           // largest number of answers waiting at a poll
	apart  bool          // the receiver belongs to a lane (a pair of queues) that has no sender
}

// run runs c over a network in fake time and returns the results.
func (n *network) run(ctx context.Context, c *Config) (found []Result, sum Summary, err error) {
	near, far := pipe.New(pipe.Config{Depth: 4096})
	rx := &pipeReceiver{in: make(chan *link.Frame, 1<<16), look: n.look}
	go func() {
		defer close(rx.in)
		fs := make([]*link.Frame, link.BatchSize)
		for {
			k, err := near.Queues()[0].Recv(fs)
			if err != nil {
				return
			}
			for _, f := range fs[:k] {
				rx.in <- f
			}
		}
	}()
	done := make(chan struct{})
	go func() { defer close(done); n.serve(far) }()
	c.Record = func(rs []Result) error { found = append(found, rs...); return nil }
	receivers := []method.Receiver{rx}
	if n.apart {
		receivers = []method.Receiver{&pipeReceiver{}, rx} // the lane of the sender has a receiver that receives nothing
	}
	sum, err = Run(ctx, c, []method.Sender{&pipeSender{queue: near.Queues()[0]}}, receivers)
	near.Close()
	n.most = rx.most
	<-done
	far.Close()
	return found, sum, err
}

// serve answers frames after delay, until the other end closes.
func (n *network) serve(dev link.Device) {
	q := dev.Queues()[0]
	fs := make([]*link.Frame, link.BatchSize)
	for {
		k, err := q.Recv(fs)
		if err != nil {
			return
		}
		if n.delay > 0 {
			time.Sleep(n.delay)
		}
		for _, f := range fs[:k] {
			for _, b := range n.answer(f.Bytes()) {
				out := link.NewFrame(len(b))
				copy(out.Bytes(), b)
				for {
					if sent, err := q.Send([]*link.Frame{out}); sent == 1 {
						break
					} else if err != nil {
						out.Free()
						break
					}
					<-q.Room()
				}
			}
			f.Free()
		}
	}
}

// fake runs f in fake time. The test fails if frames are leaked.
func fake(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	link.Track(true)
	defer link.Track(false)
	synctest.Test(t, f)
	if n := link.Outstanding(); n != 0 {
		t.Errorf("%d frames were not freed", n)
	}
}
