package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loam/gen/replay"
)

// capture returns a pcap file with three frames and a record of two bytes. The second frame is truncated and comes
// one hour and one second after the first.
func capture() []byte {
	b := []byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0}
	for _, r := range []struct{ at, length, whole uint32 }{{0, 60, 60}, {3601, 30, 60}, {3601, 60, 60}, {3601, 2, 2}} {
		for _, n := range []uint32{r.at, 0, r.length, r.whole} {
			b = binary.LittleEndian.AppendUint32(b, n)
		}
		b = append(b, make([]byte, r.length)...)
	}
	return b
}

// Differences from the captured traffic are reported before sending.
func TestReplayRemarks(t *testing.T) {
	s, err := replay.NewSource(bytes.NewReader(capture()[:len(capture())-1]))
	if err != nil {
		t.Fatal(err)
	}
	v, err := replay.Look(s, &replay.Rewrite{})
	if err != nil {
		t.Fatal(err)
	}
	v.Skipped = 1
	var out strings.Builder
	new(replayFlags).remark(&out, "x.pcap", &replay.Config{Speed: 1}, &v)
	const want = `loam: x.pcap ends within a frame, as a capture does that was interrupted: the 3 before it are sent
loam: 1 of 3 frames were captured in part, and are sent so
loam: 1 records are no frames of Ethernet, too short or too long, and are left out
loam: the capture takes 1h0m1s as it is; --speed or --rate make that shorter
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	new(replayFlags).remark(&out, "x.pcap", &replay.Config{}, &replay.Survey{Frames: 3, Span: 1 << 50})
	if out.Len() > 0 {
		t.Errorf("at a rate: %s", out.String())
	}
}

// A pipe is read like a file, as often as necessary. A folder is reported as a folder.
func TestReplayOpens(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.pcap")
	if err := os.WriteFile(name, capture(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{name, "-"} {
		f, err := openCapture(bytes.NewReader(capture()), name)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			b := make([]byte, 2*len(capture()))
			if n, _ := f.ReadAt(b, 0); !bytes.Equal(b[:n], capture()) {
				t.Errorf("%s: read %d bytes", name, n)
			}
		}
		f.Close()
	}
	if _, err := openCapture(nil, dir); err == nil || err.Error() != dir+" is a directory" {
		t.Error(err)
	}
}
