//go:build linux

package tap_test

import (
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"loam/internal/netns"
	"loam/link"
	"loam/link/linktest"
	"loam/link/tap"
)

// The kernel drops exactly the frames of the kinds that link.KindOf recognizes, except frames of known senders, and
// delivers all frames again afterwards.
func TestThin(t *testing.T) {
	needTun(t)
	d := openTap(t, tap.Config{Queues: 2}, "")
	kernel := packetSocket(t, d.Info())
	defer kernel.Close()
	arrived := make(chan string, 100) // one goroutine per queue sends; never closed
	names := map[string]string{"end": "end"}
	for _, c := range linktest.Kinds() {
		names[string(c.Frame)] = c.Name
	}
	for _, q := range d.Queues() {
		go func() {
			fs := make([]*link.Frame, link.BatchSize)
			for {
				n, err := q.Recv(fs)
				if err != nil {
					return
				}
				for _, f := range fs[:n] {
					if name := names[string(f.Bytes())]; name != "" {
						arrived <- name
					}
					f.Free()
				}
			}
		}()
	}
	// delivered sends all cases, waits until want frames have arrived, and returns their
	// names.
	delivered := func(want int) (got []string) {
		for _, c := range linktest.Kinds() {
			f := link.NewFrame(len(c.Frame))
			copy(f.Bytes(), c.Frame)
			if n, err := kernel.Queues()[0].Send([]*link.Frame{f}); n != 1 || err != nil {
				t.Fatalf("Send = %d, %v", n, err)
			}
		}
		for range want {
			got = append(got, <-arrived)
		}
		slices.Sort(got)
		return got
	}
	allow := func(kinds link.Kinds) (want []string) {
		for _, c := range linktest.Kinds() {
			if c.Kind&kinds == 0 || c.Name == "datagram to another port" {
				want = append(want, c.Name)
			}
		}
		slices.Sort(want)
		return want
	}
	const all = 1<<link.NumKinds - 1
	others := make([]netip.Addr, link.MaxKnown-1)
	for i := range others {
		others[i] = netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
	}
	for _, c := range []struct {
		name     string
		thinning link.Thinning
		want     []string
	}{
		{"none", link.Thinning{}, allow(0)},
		{"all kinds", link.Thinning{Kinds: all, Port: linktest.Port, Shift: 31}, allow(all)},
		{"one in one", link.Thinning{Kinds: all, Port: linktest.Port}, allow(0)},
		{"SYN", link.Thinning{Kinds: link.KindSYN, Shift: 31}, allow(link.KindSYN)},
		{"fragments", link.Thinning{Kinds: link.KindFragment, Shift: 31}, allow(link.KindFragment)},
		{"echo", link.Thinning{Kinds: link.KindEcho, Shift: 31, Known: others}, allow(link.KindEcho)},
		{"UDP", link.Thinning{Kinds: link.KindUDP, Port: linktest.Port, Shift: 31}, allow(link.KindUDP)},
		{"ARP", link.Thinning{Kinds: link.KindARP, Shift: 31}, allow(link.KindARP)},
		{"a known sender", link.Thinning{Kinds: all, Port: linktest.Port, Shift: 31, Known: append(others, linktest.Sender)}, allow(0)},
		{"an end", link.Thinning{}, allow(0)},
	} {
		if err := d.Thin(c.thinning); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := delivered(len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q arrived, want %q", c.name, got, c.want)
		}
	}
}

func TestThinRefused(t *testing.T) {
	needTun(t)
	d := openTap(t, tap.Config{Medium: link.IP}, "")
	if err := d.Thin(link.Thinning{Kinds: link.KindSYN}); err == nil {
		t.Error("a TUN interface has no filters, but Thin succeeds")
	}
}

// A persistent interface that another process has left with a filter, because it was killed, can be
// opened, and delivers all frames.
func TestThinLeftBehind(t *testing.T) {
	needTun(t)
	files, info, err := tap.OpenFiles(tap.Config{Persist: true})
	must(t, err)
	defer netns.IP(t, "link", "delete", info.Name)
	must(t, syscall.SetNonblock(int(files[0].Fd()), true))
	thin := tap.ThinAndLeave(int(files[0].Fd()), link.Thinning{Kinds: link.KindARP, Shift: 31})
	must(t, thin)
	must(t, files[0].Close())
	d := openTap(t, tap.Config{Name: info.Name}, "")
	kernel := packetSocket(t, d.Info())
	defer kernel.Close()
	for _, c := range linktest.Kinds() {
		if c.Kind != link.KindARP {
			continue
		}
		f := link.NewFrame(len(c.Frame))
		copy(f.Bytes(), c.Frame)
		if n, err := kernel.Queues()[0].Send([]*link.Frame{f}); n != 1 || err != nil {
			t.Fatalf("Send = %d, %v", n, err)
		}
		link.FreeAll(recv(t, d, 1, func(f *link.Frame) bool { return string(f.Bytes()) == string(c.Frame) }))
	}
}

// A device whose kernel filter thins out a flood can be closed after its interface has been removed.
func TestCloseAfterRemoval(t *testing.T) {
	needTun(t)
	d, err := tap.Open(tap.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Thin(link.Thinning{Kinds: link.KindARP, Shift: 4}); err != nil {
		t.Fatal(err)
	}
	netns.Remove(t, d.Info().Name)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
