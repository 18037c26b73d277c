//go:build linux

package interop

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"loam/internal/netns"
	"loam/link"
	"loam/link/afpacket"
	"loam/link/afxdp"
)

// TestCurlOverDevices is a short TestCurl over every device that runs on an interface of Linux, here
// one end of a veth pair.
func TestCurlOverDevices(t *testing.T) {
	packet := func(c afpacket.Config) func(string) (link.Device, error) {
		return func(name string) (link.Device, error) { c.Interface = name; return afpacket.Open(c) }
	}
	xdp := func(c afxdp.Config) func(string) (link.Device, error) {
		return func(name string) (link.Device, error) { c.Interface = name; return afxdp.Open(c) }
	}
	for name, c := range map[string]struct {
		open     func(string) (link.Device, error)
		finished bool // the device does not report unfinished checksums, so the kernel must finish the checksums of its packets
	}{
		"packet":              {open: packet(afpacket.Config{})},
		"packet, no offloads": {open: packet(afpacket.Config{NoOffloads: true}), finished: true},
		"ring":                {open: packet(afpacket.Config{Ring: true})},
		"xdp":                 {open: xdp(afxdp.Config{Mode: afxdp.Native}), finished: true},
		"xdp, generic":        {open: xdp(afxdp.Config{Mode: afxdp.Generic}), finished: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, setup{open: c.open})
			if c.finished {
				netns.FinishChecksums(t, l.tap)
			}
			size := scale(32, 2) << 20
			web := l.serveWeb(size)
			file := filepath.Join(t.TempDir(), "body")
			l.run("curl", "-sSf", "-o", file, web+"/stream")
			body, err := os.ReadFile(file)
			l.must(err)
			sum := streamHash(size)
			if sha256.Sum256(body) != sum {
				t.Errorf("curl loads %d bytes with another hash", len(body))
			}
			if got := l.run("curl", "-sSf", "-T", file, web+"/sum"); got != hex.EncodeToString(sum[:]) {
				t.Errorf("what curl stores has hash %s, want %x", got, sum)
			}
		})
	}
}
