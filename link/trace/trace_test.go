package trace_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loam/link"
	"loam/link/linktest"
	"loam/link/pipe"
	"loam/link/trace"
	"loam/wire"
)

func TestConformance(t *testing.T) {
	for name, c := range map[string]pipe.Config{"default": {}, "offloads": {Offloads: pipe.AllOffloads, Queues: 2}, "tiny": {Depth: 1}} {
		t.Run(name, func(t *testing.T) {
			linktest.Run(t, func(testing.TB) (a, b link.Device) {
				a, b = pipe.New(c)
				return trace.New(a, io.Discard, nil), b
			})
		})
	}
}

// packet is a decoded enhanced packet block.
type packet struct {
	at               time.Time
	direction, queue uint32
	frame            []byte
}

// read decodes a file, block by block.
func read(t *testing.T, file []byte) (packets []packet) {
	t.Helper()
	le := binary.LittleEndian
	for first := true; len(file) > 0; first = false {
		kind, n := le.Uint32(file), int(le.Uint32(file[4:]))
		if n%4 != 0 || n > len(file) || int(le.Uint32(file[n-4:])) != n {
			t.Fatalf("a block of %d bytes in %d", n, len(file))
		}
		if first != (kind == 0x0a0d0d0a) {
			t.Fatalf("block type %#x, first %v", kind, first)
		}
		if kind == 6 {
			b := file[8 : n-4]
			length := int(le.Uint32(b[12:]))
			options := b[20+(length+3)/4*4:]
			packets = append(packets, packet{
				at:        time.Unix(0, int64(le.Uint32(b[4:]))<<32|int64(le.Uint32(b[8:]))),
				direction: le.Uint32(options[4:]), queue: le.Uint32(options[12:]),
				frame: b[20 : 20+length],
			})
		}
		file = file[n:]
	}
	return packets
}

// Frames of both directions are written with time, direction and queue.
func TestWritesFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		inner, peer := pipe.New(pipe.Config{Queues: 2})
		d := trace.New(inner, &file, nil)
		start := time.Now()
		d.Queues()[1].Send([]*link.Frame{linktest.Plain(link.Ethernet, 61, 1)})
		time.Sleep(1500 * time.Millisecond)
		peer.Queues()[0].Send([]*link.Frame{linktest.Plain(link.Ethernet, 1514, 2)})
		fs := make([]*link.Frame, 1)
		d.Queues()[0].Recv(fs)
		fs[0].Free()
		d.Close()
		peer.Close()
		got := read(t, file.Bytes())
		if len(got) != 2 {
			t.Fatalf("%d packets, want 2", len(got))
		}
		for i, want := range []packet{
			{at: start, direction: 2, queue: 1, frame: make([]byte, 61)},
			{at: start.Add(1500 * time.Millisecond), direction: 1, queue: 0, frame: make([]byte, 1514)},
		} {
			linktest.Fill(link.Ethernet, want.frame, uint32(i+1))
			if !got[i].at.Equal(want.at) || got[i].direction != want.direction || got[i].queue != want.queue || !bytes.Equal(got[i].frame, want.frame) {
				t.Errorf("packet %d: %v, direction %d, queue %d, %d bytes; want %v, %d, %d, %d", i,
					got[i].at, got[i].direction, got[i].queue, len(got[i].frame), want.at, want.direction, want.queue, len(want.frame))
			}
		}
	})
}

// Only frames that the device accepts and sends are written, for any division into batches.
func TestWritesWhatWasTaken(t *testing.T) {
	var file bytes.Buffer
	inner, peer := pipe.New(pipe.Config{Depth: 100, Offloads: pipe.AllOffloads})
	d := trace.New(inner, &file, nil)
	fs := []*link.Frame{linktest.Plain(link.Ethernet, 2000, 99)} // a frame that is too long for the device
	for i := range 150 {
		f := linktest.Plain(link.Ethernet, 100, uint32(i))
		if i%10 == 5 {
			f.Free()
			f = linktest.Unfinished(link.Ethernet, linktest.Transport{Protocol: wire.ProtoTCP, Payload: 50_000, GSOSize: 1000})
		}
		fs = append(fs, f)
	}
	n, err := d.Queues()[0].Send(fs)
	if n != 1+128 || err != nil { // the depth of a pipe is rounded up to 128; the first frame was refused as too long
		t.Fatalf("Send = %d, %v", n, err)
	}
	link.FreeAll(fs[n:])
	d.Close()
	peer.Close()
	if got := len(read(t, file.Bytes())); got != 128 {
		t.Errorf("%d packets were written, want 128", got)
	}
}

// A single frame is in the file a second later, even if no other frame follows.
func TestFlushesWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		inner, peer := pipe.New(pipe.Config{})
		d := trace.New(inner, &file, nil)
		time.Sleep(10 * time.Second)
		for round := range 3 {
			d.Queues()[0].Send([]*link.Frame{linktest.Plain(link.Ethernet, 60, 1)})
			time.Sleep(time.Second)
			synctest.Wait()
			if got := len(read(t, file.Bytes())); got != round+1 {
				t.Errorf("%d packets after %d seconds", got, round+1)
			}
		}
		d.Close()
		peer.Close()
	})
}

// brokenWriter accepts room bytes and then fails.
type brokenWriter struct{ room int }

var errFull = errors.New("disk full")

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.room -= len(b); w.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// A write error is reported once, and the traffic continues.
func TestWriteError(t *testing.T) {
	for _, told := range []bool{true, false} {
		inner, peer := pipe.New(pipe.Config{})
		reports := 0
		var failed func(error)
		if told {
			failed = func(err error) {
				if reports++; err != errFull {
					t.Errorf("reported %v", err)
				}
			}
		}
		d := trace.New(inner, &brokenWriter{room: 100_000}, failed)
		fs := make([]*link.Frame, 64)
		for i := range 300 {
			d.Queues()[0].Send([]*link.Frame{linktest.Plain(link.Ethernet, 1514, uint32(i))})
			n, err := peer.Queues()[0].Recv(fs)
			if n != 1 || err != nil {
				t.Fatalf("Recv = %d, %v", n, err)
			}
			fs[0].Free()
		}
		err := d.Close()
		if told && (reports != 1 || err != nil) {
			t.Errorf("%d reports, and Close returned %v", reports, err)
		}
		if !told && !errors.Is(err, errFull) {
			t.Errorf("Close returned %v", err)
		}
		if err := d.Close(); err != nil {
			t.Errorf("the second Close returned %v", err)
		}
		peer.Close()
	}
}

// tshark, if installed, can read the file.
func TestTshark(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	for _, m := range []link.Medium{link.Ethernet, link.IP} {
		path := filepath.Join(t.TempDir(), "trace.pcapng")
		inner, peer := pipe.New(pipe.Config{Medium: m, Offloads: pipe.AllOffloads})
		d, err := trace.Create(inner, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		d.Queues()[0].Send([]*link.Frame{linktest.Unfinished(m, linktest.Transport{Protocol: wire.ProtoTCP, Payload: 60_000, GSOSize: 1448})})
		peer.Queues()[0].Send([]*link.Frame{linktest.Unfinished(m, linktest.Transport{Protocol: wire.ProtoUDP, IPv6: true, Payload: 5})})
		fs := make([]*link.Frame, 1)
		d.Queues()[0].Recv(fs)
		fs[0].Free()
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		peer.Close()
		out, err := exec.Command(tshark, "-r", path, "-T", "fields", "-E", "separator=,", "-e", "frame.len", "-e", "frame.interface_name",
			"-e", "frame.packet_flags_direction", "-e", "tcp.dstport", "-e", "udp.dstport").Output()
		if err != nil {
			t.Fatalf("tshark: %v\n%s", err, err.(*exec.ExitError).Stderr)
		}
		h := m.HeaderLen()
		want := fmt.Sprintf("%d,pipe.a,0x02,80,\n%d,pipe.a,0x01,,53\n", h+60_040, h+53)
		if got := strings.ReplaceAll(string(out), "0x0000000", "0x0"); got != want {
			t.Errorf("tshark says\n%swant\n%s", got, want)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	inner, peer := pipe.New(pipe.Config{})
	defer inner.Close()
	defer peer.Close()
	if _, err := trace.Create(inner, filepath.Join(t.TempDir(), "no", "such", "folder"), nil); err == nil {
		t.Error("a path that does not exist was accepted")
	}
}

func Benchmark(b *testing.B) {
	linktest.Bench(b, func(testing.TB) (link.Device, link.Device) {
		a, peer := pipe.New(pipe.Config{Offloads: pipe.AllOffloads})
		return trace.New(a, io.Discard, nil), peer
	})
}
