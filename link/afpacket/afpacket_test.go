//go:build linux

package afpacket_test

import (
	"bytes"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"loam/internal/netns"
	"loam/link"
	"loam/link/afpacket"
	"loam/link/linktest"
)

func TestMain(m *testing.M) { netns.Main(m) }

func open(t testing.TB, c afpacket.Config) *afpacket.Device {
	t.Helper()
	d, err := afpacket.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// maker returns a function that opens both ends of a veth pair.
func maker(c afpacket.Config, mtu int) linktest.Make {
	return func(t testing.TB) (link.Device, link.Device) {
		from, to := c, c
		from.Interface, to.Interface = netns.Veth(t, mtu, 1)
		return open(t, from), open(t, to)
	}
}

func TestConformance(t *testing.T) {
	netns.Need(t)
	for name, c := range map[string]struct {
		config afpacket.Config
		mtu    int
	}{
		"plain":                      {afpacket.Config{}, 1500},
		"plain, no offloads, bypass": {afpacket.Config{NoOffloads: true, Bypass: true}, 1500},
		"plain, jumbo, no offloads":  {afpacket.Config{NoOffloads: true}, 9000},
		"ring":                       {afpacket.Config{Ring: true}, 1500},
		"ring, no offloads, bypass":  {afpacket.Config{Ring: true, NoOffloads: true, Bypass: true}, 1500},
	} {
		t.Run(name, func(t *testing.T) {
			linktest.Run(t, maker(c.config, c.mtu), linktest.NeverShort, linktest.PeerUnseen)
		})
	}
}

// Several queues share the received frames: a flow stays in one queue, and no frame arrives twice.
func TestFanout(t *testing.T) {
	for name, ring := range map[string]bool{"plain": false, "ring": true} {
		t.Run(name, func(t *testing.T) {
			from, to := netns.Veth(t, 1500, 1)
			a := open(t, afpacket.Config{Interface: from})
			defer a.Close()
			b := open(t, afpacket.Config{Interface: to, Queues: 2, Ring: ring})
			const flows, each = 32, 8
			// The receivers send each frame here; they end with the device. Twice as many as the expected frames fit,
			// so that duplicates do not block.
			arrived := make(chan arrival, 2*flows*each)
			var receivers sync.WaitGroup
			for i, q := range b.Queues() {
				receivers.Go(func() { receiveFlows(t, q, i, arrived) })
			}
			for round := range each {
				for flow := range flows {
					if n, err := a.Queues()[0].Send([]*link.Frame{flowFrame(flow, round)}); n != 1 || err != nil {
						t.Fatal(n, err)
					}
				}
			}
			first := map[int]arrival{}
			for range flows * each {
				got := <-arrived
				if before, known := first[got.flow]; !known {
					first[got.flow] = got
				} else if before.queue != got.queue {
					t.Errorf("flow %d came to queue %d in round %d, and to %d in round %d", got.flow, before.queue, before.round, got.queue, got.round)
				}
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			receivers.Wait()
			if n := len(arrived); n > 0 {
				t.Errorf("%d frames came twice", n)
			}
		})
	}
}

// Frames that other programs of this host send by the interface are not received, with several
// queues as with one.
func TestFanoutIgnoresOutgoing(t *testing.T) {
	from, to := netns.Veth(t, 1500, 1)
	near := open(t, afpacket.Config{Interface: from})
	defer near.Close()
	other := open(t, afpacket.Config{Interface: to})
	defer other.Close()
	b := open(t, afpacket.Config{Interface: to, Queues: 2})
	arrived := make(chan arrival, 4)
	var receivers sync.WaitGroup
	for i, q := range b.Queues() {
		receivers.Go(func() { receiveFlows(t, q, i, arrived) })
	}
	for round, d := range []*afpacket.Device{other, near} {
		if n, err := d.Queues()[0].Send([]*link.Frame{flowFrame(0, round)}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	// Both frames are of one flow and keep their order, so a frame of round 0 would arrive first.
	if got := <-arrived; got.round != 1 {
		t.Error("a frame that left came in")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	receivers.Wait()
}

// arrival is a frame of TestFanout, with the queue that received it.
type arrival struct{ queue, flow, round int }

// Offsets in the frames of TestFanout. All frames are equal before flowAt.
const (
	flowAt  = 29 // last byte of the source address
	roundAt = 61 // last byte of the payload
)

func flowFrame(flow, round int) *link.Frame {
	f := linktest.Unfinished(link.Ethernet, linktest.Transport{Protocol: 17, Payload: 20})
	f.Bytes()[flowAt], f.Bytes()[roundAt] = byte(flow), byte(round)
	return f
}

// receiveFlows sends an arrival for each frame received by queue i. Frames of other programs are
// logged and ignored: between bind and joining the group, a socket receives all frames.
func receiveFlows(t *testing.T, q link.Queue, i int, arrived chan<- arrival) {
	model := flowFrame(0, 0)
	defer model.Free()
	fs := make([]*link.Frame, 8)
	for {
		n, err := q.Recv(fs)
		if err != nil {
			return
		}
		for _, f := range fs[:n] {
			if b := f.Bytes(); len(b) == model.Len() && bytes.Equal(b[:flowAt], model.Bytes()[:flowAt]) {
				arrived <- arrival{i, int(b[flowAt]), int(b[roundAt])}
			} else {
				t.Logf("queue %d: a frame of others: %x", i, b)
			}
			f.Free()
		}
	}
}

// The kernel removes VLAN tags from frames, and the device restores them.
func TestTags(t *testing.T) {
	for name, c := range map[string]afpacket.Config{
		"plain": {}, "plain, no offloads": {NoOffloads: true}, "ring": {Ring: true}, "ring, no offloads": {Ring: true, NoOffloads: true},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := maker(c, 1500)(t)
			defer a.Close()
			defer b.Close()
			f := linktest.Plain(link.Ethernet, 100, 5)
			copy(f.Bytes()[12:], []byte{0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 8, 6}) // two VLAN tags
			want := append([]byte(nil), f.Bytes()...)
			if n, err := a.Queues()[0].Send([]*link.Frame{f}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			fs := make([]*link.Frame, 1)
			if n, err := b.Queues()[0].Recv(fs); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if !bytes.Equal(fs[0].Bytes(), want) {
				t.Errorf("arrived as\n% x, want\n% x", fs[0].Bytes(), want)
			}
			fs[0].Free()
		})
	}
}

func TestRefusals(t *testing.T) {
	netns.Need(t)
	if d, err := afpacket.Open(afpacket.Config{Interface: "none0"}); err == nil || !strings.Contains(err.Error(), "no interface") {
		t.Errorf("%v, %v", d, err)
	}
}

// Promiscuous mode ends with the device, even if other programs also requested it.
func TestPromiscuous(t *testing.T) {
	from, _ := netns.Veth(t, 1500, 1)
	count := func() string {
		out, err := exec.Command("ip", "-d", "link", "show", from).CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(out), "promiscuity ")
		return strings.Fields(rest)[0]
	}
	d := open(t, afpacket.Config{Interface: from, Promiscuous: true})
	if got := count(); got != "1" {
		t.Errorf("open: promiscuity %s", got)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if got := count(); got != "0" {
		t.Errorf("closed: promiscuity %s", got)
	}
}
