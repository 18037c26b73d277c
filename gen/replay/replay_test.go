//go:build linux

package replay

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"loam/gen"
	"loam/gen/method"
	"loam/gen/pace"
	"loam/link"
	"loam/wire"
)

var began = time.Unix(1_700_000_000, 0)

// frameOf returns a frame that contains its number.
func frameOf(i int) []byte {
	b := make([]byte, 60+i%100)
	copy(b[12:], []byte{0x88, 0xb5})
	binary.BigEndian.PutUint32(b[14:], uint32(i))
	return b
}

// capture returns a capture file in the given format, whose frames are ms milliseconds apart.
func capture(t testing.TB, format string, n int, ms int) []byte {
	t.Helper()
	var b bytes.Buffer
	var write func(gopacket.CaptureInfo, []byte) error
	end := func() error { return nil }
	var err error
	if format == "pcapng" {
		var w *pcapgo.NgWriter
		w, err = pcapgo.NewNgWriter(&b, layers.LinkTypeEthernet)
		write, end = w.WritePacket, w.Flush
	} else {
		w := pcapgo.NewWriterNanos(&b)
		err = w.WriteFileHeader(1<<16, layers.LinkTypeEthernet)
		write = w.WritePacket
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		f := frameOf(i)
		info := gopacket.CaptureInfo{Timestamp: began.Add(time.Duration(i*ms) * time.Millisecond), CaptureLength: len(f), Length: len(f)}
		if err := write(info, f); err != nil {
			t.Fatal(err)
		}
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if format != "gzip" {
		return b.Bytes()
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(b.Bytes())
	w.Close()
	return z.Bytes()
}

// Files of all three formats give the same frames with the same times.
func TestSources(t *testing.T) {
	for _, format := range []string{"pcap", "pcapng", "gzip"} {
		s, err := NewSource(bytes.NewReader(capture(t, format, 100, 3)))
		if err != nil {
			t.Fatal(format, err)
		}
		for i := range 100 {
			b, at, err := s.Next()
			if err != nil || !bytes.Equal(b, frameOf(i)) || at != time.Duration(3*i)*time.Millisecond {
				t.Fatalf("%s: frame %d at %v, %v", format, i, at, err)
			}
		}
		if _, _, err := s.Next(); err != io.EOF {
			t.Errorf("%s: %v at the end", format, err)
		}
	}
}

// Files that are not Ethernet captures are rejected, and damage is reported.
func TestBadFiles(t *testing.T) {
	good := capture(t, "pcap", 3, 1)
	raw := bytes.Clone(good)
	raw[20] = 101 // LINKTYPE_RAW, which has no Ethernet header
	for _, test := range []struct {
		file []byte
		want string
	}{
		{nil, "it is empty"},
		{[]byte("hello, this is text"), "not a capture file"},
		{[]byte{0x1f, 0x8b, 0, 0}, "not a capture file"},
		{raw, "not a capture file of Ethernet frames: its link type is"},
	} {
		if _, err := NewSource(bytes.NewReader(test.file)); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.10q: %v", test.file, err)
		}
	}
	long := bytes.Clone(good)
	binary.LittleEndian.PutUint32(long[24+8:], 1<<20) // length of the first record
	s, err := NewSource(bytes.NewReader(long))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Look(s, &Rewrite{}); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a record that is longer than any: %v", err)
	}
}

// A capture that was interrupted or truncated yields all frames before that place.
func TestFilesThatWereCutOff(t *testing.T) {
	for _, format := range []string{"pcap", "pcapng", "gzip"} {
		good := capture(t, format, 500, 1)
		last := 0
		for n := len(good) - 300; n < len(good); n++ {
			s, err := NewSource(bytes.NewReader(good[:n]))
			if err != nil {
				t.Fatal(format, n, err)
			}
			v, err := Look(s, &Rewrite{})
			if err != nil || v.Frames > 500 || !v.Broken && format == "gzip" || int(v.Frames) < last {
				t.Fatalf("%s: %d of %d bytes: %+v, %v", format, n, len(good), v, err)
			}
			last = int(v.Frames)
		}
		if format != "gzip" && last != 499 {
			t.Errorf("%s: %d frames with a byte missing, want 499", format, last)
		}
	}
}

// Several interfaces of different types in one file are not an error.
func TestSeveralLinkTypes(t *testing.T) {
	var b bytes.Buffer
	w, err := pcapgo.NewNgWriter(&b, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.AddInterface(pcapgo.NgInterface{LinkType: layers.LinkTypeRaw})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		f := frameOf(i)
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: began, CaptureLength: len(f), Length: len(f), InterfaceIndex: i * second}, f); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	s, err := NewSource(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Look(s, &Rewrite{}); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "several link types") {
		t.Error(err)
	}
}

func TestLook(t *testing.T) {
	s, _ := NewSource(bytes.NewReader(capture(t, "pcapng", 101, 10)))
	v, err := Look(s, &Rewrite{})
	if err != nil || v.Frames != 101 || v.Longest != 159 || v.Span != time.Second || (v.Public != "") || v.PPS() != 101 {
		t.Errorf("%+v, %v", v, err)
	}
	public := frameOf(0)
	copy(public[12:], []byte{8, 0})
	copy(public[30:], []byte{8, 8, 8, 8})
	if a, ok := destination(public); !ok || a.String() != "8.8.8.8" {
		t.Errorf("%v", a)
	}
}

// recorder is a method.Sender that records all frames and their times.
type recorder struct {
	frames [][]byte
	at     []time.Time
	most   int    // longest accepted frame; longer ones are refused; 0: no limit
	bytes  uint64 // bytes of the accepted frames
	err    error
}

func (r *recorder) Layer() method.Layer { return method.Frame }
func (r *recorder) Send(n int, fill func([]byte) int) (sent int, err error) {
	for range n {
		slot := make([]byte, 2048)
		slot = slot[:fill(slot)]
		if r.most > 0 && len(slot) > r.most {
			continue
		}
		r.frames = append(r.frames, slot)
		r.at = append(r.at, time.Now())
		r.bytes += uint64(len(slot))
		sent++
	}
	return sent, r.err
}
func (r *recorder) Flush(time.Duration) error { return nil }
func (r *recorder) Counters() method.Counters {
	return method.Counters{Handed: uint64(len(r.frames)), Bytes: r.bytes}
}
func (r *recorder) Close() error { return nil }

func opener(file []byte) func() (*Source, error) {
	return func() (*Source, error) { return NewSource(bytes.NewReader(file)) }
}

// A file is sent completely and in order, as often as requested, at the given rate.
func TestReplayAtARate(t *testing.T) {
	r := &recorder{}
	rate, _ := pace.ParseRate("100kpps")
	samples := 0
	start := time.Now()
	rep, err := Run(t.Context(), Config{
		Open: opener(capture(t, "pcapng", 1000, 1)), Sender: r, Rate: rate, Loops: 3, MeanSize: 100,
		Interval: time.Millisecond, Observe: func(gen.Sample) { samples++ },
	})
	if err != nil || len(r.frames) != 3000 || rep.Total.Frames != 3000 || samples == 0 {
		t.Fatalf("%d frames, %+v, %d samples, %v", len(r.frames), rep.Total, samples, err)
	}
	for i, f := range r.frames {
		if !bytes.Equal(f, frameOf(i%1000)) {
			t.Fatalf("frame %d is another", i)
		}
	}
	if d := r.at[2999].Sub(start); d < 29*time.Millisecond { // the first frame may have been up to 1 ms late
		t.Errorf("3000 frames at 100,000 a second took %v", d)
	}
}

// Bytes of refused frames do not count as sent, and refused frames use up their time slots. The rate is also
// correct for a few frames.
func TestReplayOfRefusedFrames(t *testing.T) {
	r := &recorder{most: 100}
	rate, _ := pace.ParseRate("1kpps")
	start := time.Now()
	rep, err := Run(t.Context(), Config{Open: opener(capture(t, "pcap", 100, 1)), Sender: r, Rate: rate, Loops: 1})
	if err != nil || rep.Total.Frames != 41 || rep.Total.Bytes != r.bytes+41*4 {
		t.Errorf("%+v, want 41 frames and %d bytes; %v", rep.Total, r.bytes+41*4, err)
	}
	if d := time.Since(start); d < 99*time.Millisecond {
		t.Errorf("100 frames at 1000 a second took %v", d)
	}
	rep, err = Run(t.Context(), Config{Open: opener(capture(t, "pcap", 10, 1)), Sender: &recorder{}, Rate: rate, Loops: 1})
	if e := rep.Streams[0].Error; err != nil || e > 0.001 {
		t.Errorf("10 frames: off by %+.1f %%; %v", 100*e, err)
	}
}

// With the original timing, no frame is sent before its time, scaled by the speed. A second loop follows the first.
func TestReplayAsCaptured(t *testing.T) {
	for _, speed := range []float64{1, 4} {
		r := &recorder{}
		start := time.Now()
		rep, err := Run(t.Context(), Config{Open: opener(capture(t, "pcap", 20, 5)), Sender: r, Speed: speed, Loops: 2})
		if err != nil || len(r.frames) != 40 || rep.Streams[0].Asked != "as captured" {
			t.Fatalf("%d frames, %v", len(r.frames), err)
		}
		for i, at := range r.at {
			if early := time.Duration(float64(i)*5e6/speed) - at.Sub(start); early > 0 {
				t.Errorf("speed %v: frame %d went %v before its time", speed, i, early)
			}
		}
	}
}

// An error of the sender or of the file ends the replay.
func TestReplayErrors(t *testing.T) {
	broken := errors.New("broken")
	if _, err := Run(t.Context(), Config{Open: opener(capture(t, "pcap", 5000, 0)), Sender: &recorder{err: broken}, Loops: 1}); err != broken {
		t.Error(err)
	}
	file := capture(t, "pcap", 500, 0)
	last := len(file) - len(frameOf(499)) - 16
	binary.LittleEndian.PutUint32(file[last+8:], 1<<20) // length of the last record
	r := &recorder{}
	if _, err := Run(t.Context(), Config{Open: opener(file), Sender: r, Loops: 1}); err == nil || len(r.frames) != 499 {
		t.Errorf("%d frames, %v", len(r.frames), err)
	}
}

// A file with any single byte changed is either read or rejected. There is no fuzz target for the reader, because it
// is a library that would have to be instrumented as a whole.
func TestDamagedFiles(t *testing.T) {
	for _, format := range []string{"pcap", "pcapng"} {
		good := capture(t, format, 3, 1)
		for i := range good {
			for _, flip := range []byte{0xff, 0x80, 1} {
				file := bytes.Clone(good)
				file[i] ^= flip
				s, err := NewSource(bytes.NewReader(file))
				if err != nil {
					continue
				}
				for err == nil {
					var b []byte
					if b, _, err = s.Next(); err == nil {
						destination(b)
					}
				}
			}
		}
	}
}

// Any file is either rejected or gives frames of valid lengths, with times that do not decrease.
func FuzzSource(f *testing.F) {
	for _, format := range []string{"pcap", "pcapng", "gzip"} {
		file := capture(f, format, 5, 3)
		f.Add(file)
		f.Add(file[:len(file)-7])
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		s, err := NewSource(bytes.NewReader(file))
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Errorf("not an error of the format: %v", err)
			}
			return
		}
		last := time.Duration(0)
		const most = 1000 // a small compressed file can contain a very long sequence of zeros
		for range most {
			b, at, err := s.Next()
			if err != nil {
				return
			}
			if len(b) < wire.EthernetLen || len(b) > link.MaxFrame || at < last {
				t.Fatalf("a frame of %d bytes at %v, behind %v", len(b), at, last)
			}
			destination(b)
			last = at
		}
	})
}
