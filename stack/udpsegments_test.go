package stack_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"loam/link"
	"loam/link/pipe"
)

// Datagrams that a sender on the same machine left to the device to segment (UDP_SEGMENT)
// arrive in one frame, and are read as separate datagrams.
func TestSegmentsArrive(t *testing.T) {
	for name, data := range map[string][]string{
		"several":         {"aaaa", "bbbb", "cc"},
		"all of a length": {"aaaa", "bbbb"},
		"one":             {"aa"},
	} {
		t.Run(name, func(t *testing.T) {
			byHandOn(t, pipe.Config{Offloads: pipe.AllOffloads}, func(t *testing.T, w *peer) {
				c := mustUDP(t, w.s, 1000)
				defer c.Close()
				w.hold()
				w.sendUDP(53, 1000, strings.Join(data, ""))
				w.out[0].Offload = link.Offload{ChecksumValid: true, GSO: link.GSOUDP, GSOSize: 4, HeaderLen: 14 + 28}
				w.release()
				synctest.Wait()
				if n, _ := c.Waiting(); n != len(data) {
					t.Fatalf("%d datagrams arrived, want %d", n, len(data))
				}
				b := make([]byte, 100)
				for _, want := range data {
					n, from, err := c.ReadFrom(b)
					if err != nil || string(b[:n]) != want || from.String() != "10.0.0.2:53" {
						t.Errorf("%q from %v, %v, want %q", b[:n], from, err, want)
					}
				}
			})
		})
	}
}
