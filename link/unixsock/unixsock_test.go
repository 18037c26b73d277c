//go:build linux

package unixsock_test

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"loam/link"
	"loam/link/linktest"
	"loam/link/unixsock"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func pairs(c unixsock.Config) linktest.Make {
	return func(t testing.TB) (a, b link.Device) {
		a, b, err := unixsock.Pair(c)
		must(t, err)
		return a, b
	}
}

func TestConformance(t *testing.T) {
	for name, c := range map[string]unixsock.Config{
		"stream":          {},
		"stream header":   {Header: true},
		"stream jumbo":    {MTU: 65535, Medium: link.IP},
		"datagram":        {Framing: unixsock.Datagram},
		"datagram header": {Framing: unixsock.Datagram, Header: true},
	} {
		t.Run(name, func(t *testing.T) { linktest.Run(t, pairs(c)) })
	}
}

func TestConformanceDial(t *testing.T) {
	linktest.Run(t, func(t testing.TB) (a, b link.Device) {
		path := filepath.Join(t.TempDir(), "socket")
		l, err := unixsock.Listen(path, unixsock.Config{})
		must(t, err)
		defer l.Close()
		a, err = unixsock.Dial(path, unixsock.Config{})
		must(t, err)
		b, err = l.Accept()
		must(t, err)
		return a, b
	})
}

// Sockets of type SOCK_DGRAM, as QEMU creates them, do not report that the other end is closed.
func TestConformanceDatagramPaths(t *testing.T) {
	linktest.Run(t, func(t testing.TB) (a, b link.Device) {
		dir := t.TempDir()
		pa, pb := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		a, err := unixsock.OpenDatagram(pa, pb, unixsock.Config{})
		must(t, err)
		b, err = unixsock.OpenDatagram(pb, pa, unixsock.Config{})
		must(t, err)
		return a, b
	}, linktest.PeerUnseen)
}

// socket returns a stream device and the plain socket at its other end.
func socket(t *testing.T, c unixsock.Config) (*unixsock.Device, *net.UnixConn) {
	t.Helper()
	ours, theirs, err := unixsock.SocketPair(unixsock.Stream)
	must(t, err)
	conn, err := net.FileConn(theirs)
	must(t, err)
	theirs.Close()
	d, err := unixsock.FromFiles(c, ours)
	must(t, err)
	t.Cleanup(func() {
		d.Close()
		conn.Close()
	})
	return d, conn.(*net.UnixConn)
}

// framed returns a frame as QEMU writes it to a stream.
func framed(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// A frame is sent after its length, as QEMU expects.
func TestStreamFraming(t *testing.T) {
	d, conn := socket(t, unixsock.Config{})
	f := linktest.Plain(link.Ethernet, 60, 7)
	want := framed(f.Bytes())
	if n, err := d.Queues()[0].Send([]*link.Frame{f}); n != 1 || err != nil {
		t.Fatalf("Send = %d, %v", n, err)
	}
	got := make([]byte, 100)
	n, err := conn.Read(got)
	must(t, err)
	if string(got[:n]) != string(want) {
		t.Errorf("the stream holds\n% x\nwant\n% x", got[:n], want)
	}
}

// The reader may get the bytes of the stream in parts that begin at any byte.
func TestStreamSplit(t *testing.T) {
	d, conn := socket(t, unixsock.Config{MTU: 9000})
	var stream []byte
	lengths := []int{14, 60, 5000, 1514, 9014, 60}
	for i, n := range lengths {
		b := make([]byte, n)
		linktest.Fill(link.Ethernet, b, uint32(i))
		stream = append(stream, framed(b)...)
	}
	for _, piece := range []int{1, 3, 1000, len(stream)} {
		go func() {
			for at := 0; at < len(stream); at += piece {
				conn.Write(stream[at:min(at+piece, len(stream))])
			}
		}()
		fs := make([]*link.Frame, 4)
		for i := 0; i < len(lengths); {
			n, err := d.Queues()[0].Recv(fs)
			must(t, err)
			for _, f := range fs[:n] {
				want := linktest.Plain(link.Ethernet, lengths[i], uint32(i))
				if string(f.Bytes()) != string(want.Bytes()) {
					t.Errorf("in pieces of %d: frame %d arrived as %d bytes", piece, i, f.Len())
				}
				want.Free()
				f.Free()
				i++
			}
		}
	}
}

// An impossible length ends the connection, because nothing after it can be parsed. Frames before
// it are delivered.
func TestStreamGarbage(t *testing.T) {
	link.Track(true)
	defer link.Track(false)
	d, conn := socket(t, unixsock.Config{})
	good := make([]byte, 60)
	linktest.Fill(link.Ethernet, good, 1)
	conn.Write(append(framed(good), "GET / HTTP/1.1\r\n"...))
	fs := make([]*link.Frame, 4)
	n, err := d.Queues()[0].Recv(fs)
	if n != 1 || err != nil {
		t.Fatalf("Recv = %d, %v; want the good frame", n, err)
	}
	fs[0].Free()
	for range 2 {
		if _, err := d.Queues()[0].Recv(fs); !errors.Is(err, link.ErrClosed) {
			t.Errorf("Recv: %v, want ErrClosed", err)
		}
	}
	if s := d.Stats(); s.RxErrors != 1 || s.RxFrames != 1 {
		t.Errorf("Stats = %+v, want one frame and one error", s)
	}
	if _, open := <-d.Queues()[0].Room(); open {
		t.Error("Room was not closed")
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the other end was not told")
	}
	d.Close()
	if n := link.Outstanding(); n != 0 {
		t.Errorf("%d frames are leaked", n)
	}
}

// Invalid frames are counted and skipped, and the frames after them are delivered.
func TestStreamSkipsBadFrames(t *testing.T) {
	d, conn := socket(t, unixsock.Config{Header: true})
	good := make([]byte, 10+60)
	linktest.Fill(link.Ethernet, good[10:], 1)
	badGSO := append([]byte{1, 9}, good[2:]...)
	badStart := append([]byte{1, 0, 0, 0, 0, 0, 255, 255, 0, 0}, good[10:]...)
	for _, b := range [][]byte{nil, good[:5], good[:23], badGSO, badStart, good} {
		conn.Write(framed(b))
	}
	fs := make([]*link.Frame, 4)
	n, err := d.Queues()[0].Recv(fs)
	if n != 1 || err != nil || fs[0].Len() != 60 {
		t.Fatalf("Recv = %d, %v; want the good frame", n, err)
	}
	fs[0].Free()
	if s := d.Stats(); s.RxErrors != 5 || s.RxFrames != 1 {
		t.Errorf("Stats = %+v, want one frame and 5 errors", s)
	}
}

// If the peer closes its socket, Send and Recv return ErrClosed and Room is closed.
func TestPeerCloses(t *testing.T) {
	for _, framing := range []unixsock.Framing{unixsock.Stream, unixsock.Datagram} {
		a, b, err := unixsock.Pair(unixsock.Config{Framing: framing})
		must(t, err)
		must(t, b.Close())
		f := linktest.Plain(link.Ethernet, 60, 1)
		if n, err := a.Queues()[0].Send([]*link.Frame{f}); n != 0 || err != link.ErrClosed {
			t.Errorf("framing %d: Send = %d, %v; want ErrClosed", framing, n, err)
		}
		f.Free()
		if _, err := a.Queues()[0].Recv(make([]*link.Frame, 1)); err != link.ErrClosed {
			t.Errorf("framing %d: Recv: %v, want ErrClosed", framing, err)
		}
		if _, open := <-a.Queues()[0].Room(); open {
			t.Errorf("framing %d: Room was not closed", framing)
		}
		must(t, a.Close())
	}
}

// A datagram device without a peer drops and counts frames, as a cable with an open end. A peer may
// appear, close, and appear again.
func TestDatagramPeerReopens(t *testing.T) {
	link.Track(true)
	defer link.Track(false)
	dir := t.TempDir()
	pa, pb := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	a, err := unixsock.OpenDatagram(pa, pb, unixsock.Config{})
	must(t, err)
	send := func() {
		t.Helper()
		if n, err := a.Queues()[0].Send([]*link.Frame{linktest.Plain(link.Ethernet, 60, 1)}); n != 1 || err != nil {
			t.Errorf("Send = %d, %v", n, err)
		}
	}
	for i := range 3 {
		send()
		if s := a.Stats(); s.TxDropped != uint64(i+1) || s.TxFrames != uint64(i) {
			t.Errorf("round %d: Stats = %+v", i, s)
		}
		b, err := unixsock.OpenDatagram(pb, pa, unixsock.Config{})
		must(t, err)
		send()
		fs := make([]*link.Frame, 1)
		n, err := b.Queues()[0].Recv(fs)
		if n != 1 || err != nil {
			t.Errorf("Recv = %d, %v", n, err)
		}
		link.FreeAll(fs[:n])
		must(t, b.Close())
	}
	must(t, a.Close())
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("sockets were left behind: %v, %v", entries, err)
	}
	if n := link.Outstanding(); n != 0 {
		t.Errorf("%d frames are leaked", n)
	}
}

func TestFromFilesRefuses(t *testing.T) {
	if _, err := unixsock.FromFiles(unixsock.Config{}); err == nil {
		t.Error("no file at all was accepted")
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	must(t, err)
	if _, err := unixsock.FromFiles(unixsock.Config{}, f); err == nil {
		t.Error("a disk file was accepted")
	}
}

// FuzzStream checks that for any bytes from the peer, delivered frames are complete and no frame is
// leaked.
func FuzzStream(f *testing.F) {
	good := make([]byte, 70)
	linktest.Fill(link.Ethernet, good[10:], 1)
	f.Add(framed(good), true)
	f.Add(framed(good[10:]), false)
	f.Add(append(framed(good[10:]), framed(make([]byte, 3000))...), false)
	f.Add([]byte{0, 1, 0x10, 0, 1}, true)
	f.Fuzz(func(t *testing.T, stream []byte, header bool) {
		if len(stream) > 1<<16 {
			return
		}
		link.Track(true)
		defer link.Track(false)
		d, conn := socket(t, unixsock.Config{Header: header})
		go func() {
			conn.Write(stream)
			conn.Close()
		}()
		fs := make([]*link.Frame, 3)
		for {
			n, err := d.Queues()[0].Recv(fs)
			for _, f := range fs[:n] {
				if f.Len() < 14 {
					t.Errorf("a frame of %d bytes", f.Len())
				}
				f.Free()
			}
			if err != nil {
				break
			}
		}
		d.Close()
		if n := link.Outstanding(); n != 0 {
			t.Errorf("%d frames are leaked", n)
		}
	})
}

func Benchmark(b *testing.B) {
	for name, framing := range map[string]unixsock.Framing{"stream": unixsock.Stream, "datagram": unixsock.Datagram} {
		b.Run(name, func(b *testing.B) {
			linktest.Bench(b, pairs(unixsock.Config{Framing: framing, Header: true}))
		})
	}
}
