package offload_test

import (
	"bytes"
	"testing"

	"loam/link"
	"loam/link/linktest"
	"loam/link/offload"
	"loam/link/pipe"
	"loam/wire"
)

// open returns a function that wraps one end of a pipe without offloads.
func open(c pipe.Config) linktest.Make {
	return func(testing.TB) (a, b link.Device) {
		a, b = pipe.New(c)
		return offload.New(a), b
	}
}

func TestConformance(t *testing.T) {
	for name, config := range map[string]pipe.Config{
		"default": {},
		"IP":      {Medium: link.IP},
		"tiny":    {Depth: 1, Queues: 2},
	} {
		t.Run(name, func(t *testing.T) { linktest.Run(t, open(config)) })
	}
}

var kinds = map[string]linktest.Transport{
	"TSO4":     {Protocol: wire.ProtoTCP, Payload: 60_000, GSOSize: 1000},
	"TSO6":     {Protocol: wire.ProtoTCP, IPv6: true, Payload: 60_000, GSOSize: 1000},
	"USO":      {Protocol: wire.ProtoUDP, Payload: 60_000, GSOSize: 1000},
	"checksum": {Protocol: wire.ProtoUDP, Payload: 900},
}

// For a queue of any depth, the segments of all frames arrive in order, with complete checksums.
func TestSegments(t *testing.T) {
	link.Track(true)
	defer link.Track(false)
	for name, transport := range kinds {
		for _, depth := range []int{1, 16, 256} {
			a, b := open(pipe.Config{Depth: depth})(t)
			f := linktest.Unfinished(link.Ethernet, transport)
			header := f.Len() - transport.Payload
			want := bytes.Clone(f.Bytes()[header:])
			fs := []*link.Frame{f, linktest.Plain(link.Ethernet, 100, 1)}
			got := transfer(t, a.Queues()[0], b.Queues()[0], fs, len(want)+100-header, header)
			if !bytes.Equal(got[:len(want)], want) {
				t.Errorf("%s, depth %d: the payload differs", name, depth)
			}
			a.Close()
			b.Close()
		}
	}
	if n := link.Outstanding(); n != 0 {
		t.Errorf("%d frames are leaked", n)
	}
}

// transfer sends the frames fs, and waits for room if necessary. It returns the received payload, which has
// total bytes. header is the length of the headers of each frame.
func transfer(t *testing.T, from, to link.Queue, fs []*link.Frame, total, header int) (got []byte) {
	t.Helper()
	in := make([]*link.Frame, link.BatchSize)
	for len(got) < total {
		n, err := from.Send(fs)
		if err != nil {
			t.Fatal(err)
		}
		fs = fs[n:]
		n, err = to.Recv(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range in[:n] {
			if f.Offload != (link.Offload{}) {
				t.Fatalf("arrived unfinished: %+v", f.Offload)
			}
			got = append(got, f.Bytes()[header:]...)
		}
		link.FreeAll(in[:n])
	}
	if len(fs) != 0 || len(got) != total {
		t.Fatalf("%d bytes arrived, want %d; %d frames were not taken", len(got), total, len(fs))
	}
	return got
}

// A frame that cannot be segmented is counted, and the other frames are delivered.
func TestRefusesWrongMetadata(t *testing.T) {
	link.Track(true)
	defer link.Track(false)
	a, b := open(pipe.Config{})(t)
	bad := linktest.Unfinished(link.Ethernet, kinds["TSO4"])
	bad.GSO = link.GSOTCP6
	n, err := a.Queues()[0].Send([]*link.Frame{linktest.Plain(link.Ethernet, 60, 1), bad, linktest.Plain(link.Ethernet, 60, 2)})
	if n != 3 || err != nil {
		t.Errorf("Send = %d, %v; want 3", n, err)
	}
	if s := a.Stats(); s.TxErrors != 1 || s.TxFrames != 2 {
		t.Errorf("Stats = %+v, want 2 frames and 1 error", s)
	}
	a.Close()
	b.Close()
	if n := link.Outstanding(); n != 0 {
		t.Errorf("%d frames are leaked", n)
	}
}

// Segments held when the device is closed are freed.
func TestCloseWhileHeld(t *testing.T) {
	link.Track(true)
	defer link.Track(false)
	a, b := open(pipe.Config{Depth: 4})(t)
	f := linktest.Unfinished(link.Ethernet, kinds["TSO4"])
	if n, err := a.Queues()[0].Send([]*link.Frame{f}); n != 0 || err != nil {
		t.Errorf("Send = %d, %v; want 0", n, err)
	}
	a.Close()
	b.Close()
	f.Free()
	if n := link.Outstanding(); n != 0 {
		t.Errorf("%d frames are leaked", n)
	}
}

// One device segments a frame, and the other device merges the segments again.
func TestBothEnds(t *testing.T) {
	a, peer := pipe.New(pipe.Config{})
	from, to := offload.New(a), offload.New(peer)
	defer from.Close()
	defer to.Close()
	f := linktest.Unfinished(link.Ethernet, kinds["TSO4"])
	want, offload := bytes.Clone(f.Bytes()), f.Offload
	if n, err := from.Queues()[0].Send([]*link.Frame{f}); n != 1 || err != nil {
		t.Fatalf("Send = %d, %v", n, err)
	}
	in := make([]*link.Frame, link.BatchSize)
	n, err := to.Queues()[0].Recv(in)
	if n != 1 || err != nil {
		t.Fatalf("Recv = %d, %v; want 1", n, err)
	}
	offload.ChecksumValid = true
	if !bytes.Equal(in[0].Bytes(), want) || in[0].Offload != offload {
		t.Errorf("arrived as %d bytes, %+v; sent as %d, %+v", in[0].Len(), in[0].Offload, len(want), offload)
	}
	link.FreeAll(in[:n])
}

func Benchmark(b *testing.B) { linktest.Bench(b, open(pipe.Config{})) }

// BenchmarkBothEnds segments a frame of 64 kB, passes the segments through a pipe, and merges them
// again.
func BenchmarkBothEnds(b *testing.B) {
	end, peer := pipe.New(pipe.Config{})
	from, to := offload.New(end), offload.New(peer)
	defer from.Close()
	defer to.Close()
	model := linktest.Unfinished(link.Ethernet, linktest.Transport{Protocol: wire.ProtoTCP, Payload: 65_160, GSOSize: 1448})
	b.SetBytes(65_160)
	b.ReportAllocs()
	out, in := make([]*link.Frame, 1), make([]*link.Frame, link.BatchSize)
	for b.Loop() {
		out[0] = link.NewFrame(model.Len())
		copy(out[0].Bytes(), model.Bytes())
		out[0].Offload = model.Offload
		if n, err := from.Queues()[0].Send(out); n != 1 || err != nil {
			b.Fatal(n, err)
		}
		for got := 0; got < 65_160; {
			n, err := to.Queues()[0].Recv(in)
			if err != nil {
				b.Fatal(err)
			}
			for _, f := range in[:n] {
				got += f.Len() - int(model.HeaderLen)
			}
			link.FreeAll(in[:n])
		}
	}
}
