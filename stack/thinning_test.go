package stack

import (
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loam/link"
	"loam/link/linktest"
	"loam/link/pipe"
	"loam/stack/flood"
	"loam/wire"
)

// thinnerDevice is a device that records what it is asked to thin out.
type thinnerDevice struct {
	link.Device
	mu    sync.Mutex
	asked []link.Thinning
	err   error
}

func (d *thinnerDevice) Thin(t link.Thinning) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, t)
	return d.err
}

// kinds returns the kinds of all requests so far.
func (d *thinnerDevice) kinds() (kinds []link.Kinds) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.asked {
		kinds = append(kinds, t.Kinds)
	}
	return kinds
}

// flooded is a stack behind a thinnerDevice, and the other end of its link.
type flooded struct {
	t      *testing.T
	stack  *Stack
	device *thinnerDevice
	other  link.Device
	frames map[link.Kinds][]byte
}

func newFlooded(t *testing.T) *flooded {
	a, b := pipe.New(pipe.Config{MACs: [2]wire.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 9}}})
	w := &flooded{t: t, stack: New(Config{Shards: 1}), device: &thinnerDevice{Device: a}, other: b, frames: map[link.Kinds][]byte{}}
	if _, err := w.stack.Attach(w.device, InterfaceConfig{Name: "eth0", NoIPv6: true}); err != nil {
		t.Fatal(err)
	}
	for _, c := range linktest.Kinds() {
		w.frames[c.Kind] = c.Frame
	}
	return w
}

func (w *flooded) close() {
	w.stack.Close()
	w.other.Close()
}

// send sends n frames of a kind, from many senders or from one.
func (w *flooded) send(kind link.Kinds, n, senders int) {
	w.t.Helper()
	source := wire.EthernetLen + 12
	if kind == link.KindARP {
		source = wire.EthernetLen + 14
	}
	for n > 0 {
		fs := make([]*link.Frame, 0, link.BatchSize)
		for range min(n, link.BatchSize) {
			f := link.NewFrame(len(w.frames[kind]))
			copy(f.Bytes(), w.frames[kind])
			f.Bytes()[source+3] = byte(n % senders)
			n--
			fs = append(fs, f)
		}
		for len(fs) > 0 {
			taken, err := w.other.Queues()[0].Send(fs)
			if err != nil {
				w.t.Fatal(err)
			}
			if fs = fs[taken:]; len(fs) > 0 {
				<-w.other.Queues()[0].Room()
			}
		}
	}
	synctest.Wait()
}

func (w *flooded) want(sentence string, kinds ...link.Kinds) {
	w.t.Helper()
	synctest.Wait()
	if got := w.device.kinds(); !slices.Equal(got, kinds) {
		w.t.Errorf("%s: the device was asked for %v, want %v", sentence, got, kinds)
	}
}

// lone is an upper limit for the frames of a flood that arrive alone (not in a batch) in these tests. The stack does
// not count such frames as a flood.
const lone = flood.CensusFrames / 16

func TestFloodIsThinnedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFlooded(t)
		defer w.close()
		w.send(link.KindSYN, flood.CensusFrames/2, 100)
		time.Sleep(time.Second)
		w.send(link.KindSYN, flood.CensusFrames/2+lone, 100)
		w.want("many frames in a long time are no flood")
		w.send(link.KindEcho, flood.CensusFrames, 1)
		w.want("nor are those of one sender")
		w.send(link.KindARP, flood.CensusFrames+lone, 100)
		w.want("many frames of many senders are", link.KindARP)
		w.send(link.KindSYN, flood.CensusFrames+lone, 100)
		w.want("and so is a second kind", link.KindARP, link.KindARP|link.KindSYN)
		w.send(link.KindSYN, flood.CensusFrames, 100)
		time.Sleep(flood.Interval)
		w.want("the flood goes on", link.KindARP, link.KindARP|link.KindSYN, link.KindARP|link.KindSYN)
		time.Sleep(flood.Interval)
		w.want("the flood has ended", link.KindARP, link.KindARP|link.KindSYN, link.KindARP|link.KindSYN, 0)
		time.Sleep(time.Minute)
		w.want("and nothing happens", link.KindARP, link.KindARP|link.KindSYN, link.KindARP|link.KindSYN, 0)
		if c := w.stack.Counters(); c.Get(EthFloods) != 2 {
			t.Errorf("%d floods are counted, want 2", c.Get(EthFloods))
		}
	})
}

func TestKnownPeersAreNotThinnedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFlooded(t)
		defer w.close()
		known := make([]netip.Addr, link.MaxKnown+1)
		for i := range known {
			known[i] = netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		}
		w.stack.onEach(func(sh *shard) {
			for range 2 {
				for _, addr := range known[:link.MaxKnown] {
					sh.know(addr)
				}
			}
		})
		w.send(link.KindFragment, flood.CensusFrames+lone, 100)
		w.stack.onEach(func(sh *shard) {
			sh.know(known[link.MaxKnown])
			sh.know(netip.MustParseAddr("2001:db8::1"))
		})
		w.send(link.KindFragment, flood.CensusFrames, 100)
		time.Sleep(flood.Interval)
		w.want("a flood", link.KindFragment, link.KindFragment)
		first, second := w.device.asked[0].Known, w.device.asked[1].Known
		slices.SortFunc(first, netip.Addr.Compare)
		slices.SortFunc(second, netip.Addr.Compare)
		if !slices.Equal(first, known[:link.MaxKnown]) {
			t.Errorf("known are %v", first)
		}
		if !slices.Equal(second, known[1:]) {
			t.Errorf("with one more peer, known are %v", second)
		}
	})
}

// A flood of datagrams is thinned out only at an unused port.
func TestDatagramsAreThinnedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFlooded(t)
		defer w.close()
		at := netip.AddrPortFrom(netip.IPv4Unspecified(), linktest.Port)
		c, err := w.stack.ListenUDP(at, UDPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.send(link.KindUDP, flood.CensusFrames+lone, 100)
		w.want("a program uses the port")
		c.Close()
		w.send(link.KindUDP, flood.CensusFrames+lone, 100)
		w.want("nobody uses the port", link.KindUDP)
		if port := w.device.asked[0].Port; port != linktest.Port {
			t.Errorf("the port is %d, want %d", port, linktest.Port)
		}
		if c, err = w.stack.ListenUDP(at, UDPOptions{}); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		w.send(link.KindUDP, flood.CensusFrames+lone, 100)
		time.Sleep(flood.Interval)
		w.want("a program uses it again", link.KindUDP, 0)
	})
}

func TestDeviceRefusesToThin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFlooded(t)
		defer w.close()
		w.device.err = link.ErrClosed
		w.send(link.KindSYN, 3*flood.CensusFrames, 100)
		time.Sleep(time.Minute)
		w.want("a device that refuses is not asked again", link.KindSYN)
	})
}
