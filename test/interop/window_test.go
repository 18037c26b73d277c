//go:build linux

package interop

import (
	"strings"
	"testing"
	"time"
)

// TestZeroWindow checks that a reader that stops closes the window, that the sender waits and probes,
// and that everything arrives when the reader continues.
func TestZeroWindow(t *testing.T) {
	for _, v := range []variant{{"offloads", setup{}, 0}, {"no offloads", setup{noOffloads: true}, 0}} {
		t.Run(v.name, func(t *testing.T) {
			l := newLab(t, v.setup)
			for _, d := range l.directions() {
				const size = 64 << 20 // more than all buffers hold
				sender, reader := l.connect(d)
				sent := make(chan error, 1) // the goroutine sends once
				go func() {
					err := sendStream(sender, size)
					if err == nil {
						err = sender.CloseWrite()
					}
					sent <- err
				}()
				l.eventually("the window is closed", func() bool { return l.probing(d, sender) })
				began := time.Now()
				if err := receiveStream(reader, size); err != nil {
					t.Errorf("%s: %v", d, err)
				}
				if err := <-sent; err != nil {
					t.Errorf("%s: sender: %v", d, err)
				}
				t.Logf("%s: %s", d, rate(size, began))
				l.must(sender.Close())
				l.must(reader.Close())
			}
		})
	}
}

// probing reports whether the sender of a direction has probed a closed window.
func (l *lab) probing(d direction, sender conn) bool {
	if d.client.name == "loam" {
		info := loamEnd(sender, sender).Info()
		return info.Probes > 0 && info.SndWnd < info.SndMSS
	}
	out := l.run("ss", "-tinoH", "state", "established", "dst", l.loam.addr.String())
	return strings.Contains(out, "timer:(persist,") && strings.Contains(out, " backoff:")
}

// TestSmallReads checks that a reader that reads little and rarely gets everything, and does not cause
// small segments (RFC 9293 section 3.8.6.2.2).
func TestSmallReads(t *testing.T) {
	l := newLab(t, setup{})
	for _, d := range l.directions() {
		const size = 2 << 20
		sender, reader := l.connect(d)
		if err := transfer(sender, slowly{reader}, size); err != nil {
			t.Errorf("%s: %v", d, err)
		}
		if d.client.name == "loam" {
			info := loamEnd(sender, sender).Info()
			if average := size / max(1, int(info.DataSegmentsOut)); average < info.SndMSS/2 {
				t.Errorf("%d segments for %d bytes", info.DataSegmentsOut, size)
			}
		}
	}
}

// slowly is a connection whose Read returns at most 100 bytes.
type slowly struct{ conn }

func (s slowly) Read(p []byte) (int, error) { return s.conn.Read(p[:min(len(p), 100)]) }
