//go:build linux

package afxdp_test

import (
	"testing"
	"time"

	"loam/internal/netns"
	"loam/link"
	"loam/link/afxdp"
	"loam/link/linktest"
)

func open(t testing.TB, c afxdp.Config) *afxdp.Device {
	t.Helper()
	d, err := afxdp.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// maker returns a function that opens a device on each end of a veth pair.
func maker(c afxdp.Config, mtu, queues int) linktest.Make {
	return func(t testing.TB) (link.Device, link.Device) {
		from, to := c, c
		from.Interface, to.Interface = netns.Veth(t, mtu, queues)
		return open(t, from), open(t, to)
	}
}

func TestConformance(t *testing.T) {
	netns.Need(t)
	for name, c := range map[string]struct {
		config      afxdp.Config
		mtu, queues int
	}{
		"native":       {afxdp.Config{Mode: afxdp.Native}, 1500, 1},
		"generic":      {afxdp.Config{Mode: afxdp.Generic}, 1500, 1},
		"two queues":   {afxdp.Config{Copying: afxdp.Copy}, 1500, 2},
		"large chunks": {afxdp.Config{}, 3000, 1},
		"in pieces":    {afxdp.Config{}, 9000, 1},
		"busy polling": {afxdp.Config{BusyPoll: 20 * time.Microsecond}, 1500, 1},
	} {
		t.Run(name, func(t *testing.T) {
			linktest.Run(t, maker(c.config, c.mtu, c.queues), linktest.NeverShort, linktest.PeerUnseen)
		})
	}
}
