package pipe_test

import (
	"testing"
	"testing/synctest"

	"loam/link"
	"loam/link/linktest"
	"loam/link/pipe"
	"loam/wire"
)

func maker(c pipe.Config) linktest.Make {
	return func(testing.TB) (a, b link.Device) { return pair(c) }
}

func pair(c pipe.Config) (a, b link.Device) { return pipe.New(c) }

func TestConformance(t *testing.T) {
	for name, config := range map[string]pipe.Config{
		"default":  {},
		"offloads": {Offloads: pipe.AllOffloads},
		"IP":       {Medium: link.IP, MTU: pipe.MaxMTU, Offloads: link.OffloadChecksum},
		"queues":   {Queues: 3, Depth: 7},
		"tiny":     {MTU: 576, Depth: 1, Offloads: pipe.AllOffloads},
	} {
		t.Run(name, func(t *testing.T) { linktest.Run(t, maker(config)) })
	}
}

func TestDefaults(t *testing.T) {
	a, b := pipe.New(pipe.Config{})
	want := link.Info{Name: "pipe.a", MAC: wire.MAC{2, 0, 0, 0, 0, 0xa}, MTU: 1500}
	if a.Info() != want {
		t.Errorf("Info = %+v, want %+v", a.Info(), want)
	}
	if a.Info().MAC == b.Info().MAC {
		t.Error("both ends have the same address")
	}
}

// Frames are handed over: the receiver gets the same buffer that was sent.
func TestNoCopy(t *testing.T) {
	a, b := pipe.New(pipe.Config{})
	defer a.Close()
	defer b.Close()
	f := linktest.Plain(link.Ethernet, 60, 1)
	if n, err := a.Queues()[0].Send([]*link.Frame{f}); n != 1 || err != nil {
		t.Fatalf("Send = %d, %v", n, err)
	}
	got := make([]*link.Frame, 4)
	if n, err := b.Queues()[0].Recv(got); n != 1 || err != nil || got[0] != f {
		t.Fatalf("Recv = %d, %v, frame %p; want 1 and %p", n, err, got[0], f)
	}
	f.Free()
}

// Frames sent before Close still arrive. The end that was closed receives no more frames.
func TestCloseDeliversWhatWasSent(t *testing.T) {
	a, b := pipe.New(pipe.Config{})
	a.Queues()[0].Send([]*link.Frame{linktest.Plain(link.Ethernet, 60, 1), linktest.Plain(link.Ethernet, 60, 2)})
	b.Queues()[0].Send([]*link.Frame{linktest.Plain(link.Ethernet, 60, 3)})
	a.Close()
	fs := make([]*link.Frame, 4)
	if n, err := b.Queues()[0].Recv(fs); n != 2 || err != nil {
		t.Errorf("the open end: Recv = %d, %v; want the 2 frames", n, err)
	}
	if _, err := b.Queues()[0].Recv(fs); err != link.ErrClosed {
		t.Errorf("the open end, drained: Recv: %v, want ErrClosed", err)
	}
	if _, err := a.Queues()[0].Recv(fs); err != link.ErrClosed {
		t.Errorf("the closed end: Recv: %v, want ErrClosed", err)
	}
	if _, open := <-b.Queues()[0].Room(); open {
		t.Error("Room of the open end was not closed")
	}
	b.Close()
}

// A goroutine in Recv does not stop fake time from advancing.
func TestRecvLetsFakeTimeMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe.New(pipe.Config{})
		got := make(chan error)
		go func() {
			_, err := b.Queues()[0].Recv(make([]*link.Frame, 1))
			got <- err
		}()
		synctest.Wait() // returns when the receiver is parked
		a.Close()
		if err := <-got; err != link.ErrClosed {
			t.Errorf("Recv: %v, want ErrClosed", err)
		}
		b.Close()
	})
}

func Benchmark(b *testing.B) {
	linktest.Bench(b, maker(pipe.Config{Offloads: pipe.AllOffloads}))
}
