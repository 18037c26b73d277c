//go:build linux

package gen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"loam/gen/frame"
	"loam/gen/method"
	"loam/gen/pace"
	"loam/gen/sink"
	"loam/internal/netns"
	"loam/wire"
)

func TestMain(m *testing.M) { netns.Main(m) }

// lab is a veth pair to another network namespace.
type lab struct {
	*netns.Far
	near, far string
	net       int
}

func newLab(t testing.TB) *lab {
	l := &lab{Far: netns.NewFar(t)}
	l.near, l.far, l.net = l.Wire(t)
	return l
}

// sink opens a sink at the far end.
func (l *lab) sink(t testing.TB, name string) *sink.Sink {
	t.Helper()
	m, err := method.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	var r method.Receiver
	l.Do(t, func() { r, err = m.Listen(method.Config{Interface: l.far, Promiscuous: true}) })
	if err != nil {
		t.Fatal(err)
	}
	return sink.Start(r)
}

// udp returns a template of UDP to the far end.
func (l *lab) udp(t testing.TB) *frame.Template {
	t.Helper()
	tpl, err := frame.Parse(fmt.Sprintf("eth; ip dst=10.%d.0.2; udp dport=9", l.net))
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

func rate(t testing.TB, s string) pace.Rate {
	t.Helper()
	r, err := pace.ParseRate(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every method sends the configured frames, and all of them arrive in order, with complete sequence numbers in each
// flow.
func TestEveryMethodArrivesWhole(t *testing.T) {
	for _, m := range method.All() {
		if m.Name == "tap" {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			l := newLab(t)
			s := l.sink(t, "ring")
			rep, err := Run(t.Context(), Config{
				Method: m.Name, Interface: l.near,
				Streams: []Stream{{Template: l.udp(t), Count: 3000, Rate: rate(t, "50kpps"), Sizes: frame.FixedSize(200)}},
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Stop()
			if err != nil {
				t.Fatal(err)
			}
			if c := rep.Counters; rep.Total.Frames != 3000 || rep.Total.Bytes != 3000*200 || c.Handed != 3000 || c.Left != 3000 || c.Refused != 0 {
				t.Errorf("sent %+v, %+v", rep.Total, c)
			}
			if c := got.Total; c.Received != 3000 || c.Unique != 3000 || c.Lost != 0 || c.Reordered != 0 || c.Duplicates != 0 || c.Negative != 0 || got.Dropped != 0 {
				t.Errorf("arrived %+v, dropped %d", c, got.Dropped)
			}
			if c := got.Total.Latency; c.Count != 3000 || c.Max > time.Minute || c.Max <= 0 {
				t.Errorf("latency %+v", c)
			}
			if len(got.Flows) != 1 || got.Flows[0].ID != 0 {
				t.Errorf("flows %+v", got.Flows)
			}
		})
	}
}

// Batches of tagged frames are limited by default: a batch of thousands takes milliseconds, and all its frames
// carry the same time stamp.
func TestTaggedBatches(t *testing.T) {
	for _, c := range []struct {
		bare  bool
		batch int
		calls uint64
	}{{false, 0, 4}, {true, 0, 1}, {false, 512, 2}} {
		l := newLab(t)
		rep, err := Run(t.Context(), Config{
			Method: "xdp", Interface: l.near, Batch: c.batch,
			Streams: []Stream{{Template: l.udp(t), Count: 4 * taggedBatch, Bare: c.bare}},
		})
		if err != nil || rep.Counters.Left != 4*taggedBatch || rep.Counters.Kicks < c.calls || c.bare && rep.Counters.Kicks > c.calls {
			t.Errorf("%+v: %+v, %v", c, rep.Counters, err)
		}
	}
}

// Each stream keeps its own rate, size and count. Flows and queues are numbered independently.
func TestStreamsFlowsQueues(t *testing.T) {
	l := newLab(t)
	s := l.sink(t, "packet")
	vlan, err := frame.Parse(fmt.Sprintf("eth; vlan id=7; ip dst=10.%d.0.0/24; tcp dport=80 flags=S; payload fill=1", l.net))
	if err != nil {
		t.Fatal(err)
	}
	vlan.Set("eth.dst", "02:00:00:00:00:99")
	rep, err := Run(t.Context(), Config{
		Method: "packet", Interface: l.near, Queues: 2,
		Streams: []Stream{
			{Name: "udp", Template: l.udp(t), Count: 1200, Rate: rate(t, "20kpps"), Flows: 6, Sizes: frame.FixedSize(64)},
			{Name: "tcp", Template: vlan, Count: 301, Rate: rate(t, "5kpps"), Sizes: frame.FixedSize(300)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if rep.Streams[0].Frames != 1200 || rep.Streams[1].Frames != 301 {
		t.Errorf("%+v", rep.Streams)
	}
	if got.Total.Unique != 1501 || got.Total.Lost != 0 || got.Total.Reordered != 0 {
		t.Errorf("%+v", got.Total)
	}
	perFlow := map[int]int{}
	for _, f := range got.Flows {
		perFlow[f.ID.Stream()]++
		if f.ID.Stream() == 0 && f.Unique != 200 {
			t.Errorf("flow %v: %+v", f.ID, f.Counts)
		}
	}
	if perFlow[0] != 6 || perFlow[1] != 2 {
		t.Errorf("flows %v: want 3 of each queue, and 1", perFlow)
	}
}

// Any rate is accurate to a thousandth over a second: all frames that belong in the second are sent. The test does
// not check when the last frame leaves, because that depends on the load of the machine.
func TestRateIsHeld(t *testing.T) {
	l := newLab(t)
	for text, want := range map[string]float64{
		"100pps": 100, "3333pps": 3333, "40kpps": 40000, "10Mbps": 10e6 / (8 * 64), "20MbpsL1": 20e6 / (8 * 84),
	} {
		rep, err := Run(t.Context(), Config{
			Method: "ring", Interface: l.near, Time: time.Second,
			Streams: []Stream{{Template: l.udp(t), Rate: rate(t, text)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		s := rep.Streams[0]
		missed := want * s.Missed.Seconds()
		// The number of frames is an integer, so it may differ by one from the rate.
		if off := math.Abs(float64(s.Frames) + missed - want); off > 0.001*want+1 {
			t.Errorf("%s: %d frames in %v, want %.0f; missed %v", text, s.Frames, rep.Elapsed, want, s.Missed)
		}
		if s.Gaps.Count != int64(s.Frames)-1 {
			t.Errorf("%s: %d gaps between %d frames", text, s.Gaps.Count, s.Frames)
		}
	}
}

// Steps run in sequence, each at its share of the rate, and the sequence numbers of a flow continue.
func TestSteps(t *testing.T) {
	l := newLab(t)
	s := l.sink(t, "ring")
	rep, err := Run(t.Context(), Config{
		Method: "packet", Interface: l.near,
		Steps:   []Step{{100 * time.Millisecond, 1}, {50 * time.Millisecond, 0}, {100 * time.Millisecond, 0.25}, {100 * time.Millisecond, 2}},
		Streams: []Stream{{Template: l.udp(t), Rate: rate(t, "10kpps")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Stop()
	if err != nil {
		t.Fatal(err)
	}
	const want = 1000 + 0 + 250 + 2000
	missed := uint64(20_000 * rep.Streams[0].Missed.Seconds()) // upper limit: the missed time multiplied by the highest rate
	if n := rep.Total.Frames; n+missed < want-3 || n > want+3 {
		t.Errorf("%d frames, want %d, at most %d missed", n, want, missed)
	}
	if c := got.Total; c.Unique != rep.Total.Frames || c.Lost != 0 || c.Duplicates != 0 {
		t.Errorf("%+v", c)
	}
	if rep.Elapsed < 350*time.Millisecond {
		t.Errorf("the steps took %v", rep.Elapsed)
	}
}

// Samples add up to the report, and the last sample is marked as the last.
func TestObserve(t *testing.T) {
	l := newLab(t)
	var samples []Sample
	ready := 0
	rep, err := Run(t.Context(), Config{
		Method: "udp", Interface: l.near, Time: 300 * time.Millisecond, Interval: 50 * time.Millisecond,
		Streams: []Stream{{Template: l.udp(t), Rate: rate(t, "1kpps")}},
		Observe: func(s Sample) { samples = append(samples, s) },
		Ready:   func() error { ready++; return nil },
	})
	if err != nil || ready != 1 {
		t.Fatalf("%v, ready %d times", err, ready)
	}
	if n := len(samples); n < 3 || !samples[n-1].Last || samples[n-1].Total.Frames != rep.Total.Frames {
		t.Errorf("%d samples, the last %+v", n, samples[n-1])
	}
}

// A canceled run ends early and still reports what it sent.
func TestCancel(t *testing.T) {
	l := newLab(t)
	ctx, cancel := context.WithCancel(t.Context())
	rep, err := Run(ctx, Config{
		Method: "packet", Interface: l.near, Interval: 10 * time.Millisecond,
		Streams: []Stream{{Template: l.udp(t), Rate: rate(t, "1kpps")}},
		Observe: func(s Sample) {
			if s.Total.Frames > 0 {
				cancel()
			}
		},
	})
	cancel()
	if err != nil || rep.Total.Frames == 0 || rep.Counters.Left != rep.Total.Frames {
		t.Errorf("%+v, %v", rep, err)
	}
}

// Invalid configurations are rejected before a frame is sent, with a one-line error.
func TestBadConfigurations(t *testing.T) {
	l := newLab(t)
	good := func() Config {
		return Config{Method: "packet", Interface: l.near, Streams: []Stream{{Template: l.udp(t), Count: 1}}}
	}
	for _, test := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Streams = nil }, "no stream"},
		{func(c *Config) { c.Method = "smoke" }, "no such method"},
		{func(c *Config) { c.Streams = append(c.Streams, c.Streams[0]); c.Streams[1].Name = "stream 1" }, `two streams of the name "stream 1"`},
		{func(c *Config) { c.Queues = 33 }, "33 queues"},
		{func(c *Config) { c.Interface = "nosuch0" }, "no interface"},
		{func(c *Config) { c.Time = -1 }, "a time of"},
		{func(c *Config) { c.Streams[0].Flows = 70000 }, "70000 flows"},
		{func(c *Config) { c.Steps = []Step{{1, 1}, {0, 1}} }, "step 2: a time of"},
		{func(c *Config) { c.Steps = []Step{{1, -1}} }, "step 1: a scale of"},
		{func(c *Config) { c.Steps = []Step{{1, 0.5}} }, "no rate that could be scaled"},
		{func(c *Config) { c.Streams[0].Template = nil }, "no template"},
		{func(c *Config) { c.Streams[0].Template.Set("ip.dst", "8.8.8.8") }, "public address"},
		{func(c *Config) { c.Streams[0].Template.Set("ip.dst", "random") }, "public address"},
		{func(c *Config) { c.Streams[0].Template.Set("ip.ttl", "many") }, "ip.ttl"},
		{func(c *Config) { c.Method = "udp"; c.Streams[0].Template.Set("ip.dst", "10.0.0.0/8") }, "one destination"},
		{func(c *Config) { c.Method = "udp"; c.Streams[0].Flows = 3 }, "one destination"},
		{func(c *Config) { c.Method = "net"; c.Streams[0].Template, _ = frame.Parse("eth; arp") }, "sends UDP only"},
		{func(c *Config) { c.Method = "raw"; c.Streams[0].Template, _ = frame.Parse("eth; arp") }, "sends IP packets"},
		{func(c *Config) { c.Streams[0].Template, _ = frame.Parse("ip; udp") }, "the template begins with ip, and frames begin with eth"},
		{func(c *Config) { c.Streams[0].Template.Set("ip.dst", fmt.Sprintf("10.%d.0.0/24", l.net)) }, fmt.Sprintf("10.%d.0.0/24 are neighbours on %s, each with", l.net, l.near)},
	} {
		c := good()
		test.change(&c)
		rep, err := Run(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") || rep.Total.Frames != 0 {
			t.Errorf("want %q: %v, %+v", test.want, err, rep.Total)
		}
	}
}

// A run in which every frame is refused returns an error.
func TestAllFramesRefused(t *testing.T) {
	l := newLab(t)
	netns.IP(t, "link", "set", l.near, "mtu", "600")
	_, err := Run(t.Context(), Config{
		Method: "packet", Interface: l.near,
		Streams: []Stream{{Template: l.udp(t), Sizes: frame.FixedSize(1000)}},
	})
	if !errors.Is(err, errRefused) {
		t.Error(err)
	}
}

// Sending a frame allocates no memory, from the template to the kernel.
func TestLaneAllocatesNothing(t *testing.T) {
	l := newLab(t)
	r := &run{Config: Config{Method: "packet", Interface: l.near, Streams: []Stream{{Template: l.udp(t), Flows: 10}}}.withDefaults()}
	r.method, _ = method.ByName("packet")
	defer r.close()
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	lane := r.streams[0][0]
	lane.enter(pace.Rate{}, 1, pace.Now())
	if n := testing.AllocsPerRun(100, func() { lane.send(64) }); n > 0 {
		t.Errorf("%v allocations for 64 frames", n)
	}
}

func TestFirstOf(t *testing.T) {
	for pattern, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "10.0.0.9/8": "10.0.0.0", "10.0.0.3-10.0.0.9": "10.0.0.3", "10.0.0.4,1.1.1.1": "10.0.0.4", "10.0.0.5+2": "10.0.0.5",
		"2001:db8::1": "2001:db8::1",
	} {
		if got, ok := firstOf(pattern); !ok || got != netip.MustParseAddr(want) {
			t.Errorf("%s: %v, %v", pattern, got, ok)
		}
	}
	if _, ok := firstOf("random"); ok {
		t.Error("random has a first address")
	}
}

// With methods that send payloads only, the smallest frame without tags has a payload. Sizes that leave no room for a
// payload are rejected.
func TestBareFramesHaveAPayload(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"net", "udp", "mmsg", "udpgso", "packet"} {
		s := Stream{Template: l.udp(t), Bare: true, Count: 100}
		c := Config{Method: name, Interface: l.near, Streams: []Stream{s}, NextHop: wire.MAC{2, 0, 0, 0, 0, 0x99}}
		netns.IP(t, "neigh", "replace", fmt.Sprintf("10.%d.0.2", l.net), "lladdr", c.NextHop.String(), "dev", l.near, "nud", "permanent")
		if r, err := Run(t.Context(), c); err != nil || r.Total.Frames != 100 || r.Total.Bytes != 100*frame.MinSize {
			t.Errorf("%s: %+v, %v", name, r.Total, err)
		}
	}
	six, err := frame.Parse("eth; ip6 dst=fd00::2; udp dport=9")
	if err != nil {
		t.Fatal(err)
	}
	s := Stream{Template: six, Bare: true, Count: 1, Sizes: frame.FixedSize(66)}
	if _, err := Run(t.Context(), Config{Method: "udp", Interface: l.near, Streams: []Stream{s}}); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "allowed: 67 or more") {
		t.Errorf("a frame without a payload: %v", err)
	}
}

// Checksums left to the device are correct at the far end if the interface cannot compute them, because the kernel
// does. If the interface can, the receiving UDP socket accepts the packets without a computed checksum.
func TestLeftChecksums(t *testing.T) {
	for _, name := range []string{"packet", "ring"} {
		for _, offload := range []string{"on", "off"} {
			l := newLab(t)
			if out, err := exec.Command("ethtool", "-K", l.near, "tx-checksum-ip-generic", offload).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			m, _ := method.ByName("ring")
			var r method.Receiver
			var socket net.PacketConn
			var err error
			l.Do(t, func() {
				if r, err = m.Listen(method.Config{Interface: l.far}); err == nil {
					socket, err = net.ListenPacket("udp4", fmt.Sprintf("10.%d.0.2:9", l.net))
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			const count = 200
			tpl := l.udp(t)
			tpl.Set("udp.sport", "random:1024-60000")
			sizes, _ := frame.ParseSizes("64-300")
			c := Config{Method: name, Interface: l.near, LeaveChecksum: true, Streams: []Stream{{Template: tpl, Count: count, Sizes: sizes}}}
			if rep, err := Run(t.Context(), c); err != nil || rep.Total.Frames != count || rep.Counters.Refused != 0 {
				t.Fatalf("%s: %+v, %v", name, rep, err)
			}
			right, wrong := 0, 0
			for right+wrong < count {
				n, err := r.Receive(10*time.Second, func(b []byte, _ int64) {
					if ip, rest, err := wire.ParseIPv4(b[wire.EthernetLen:]); err != nil || ip.Protocol != wire.ProtoUDP {
						return // traffic of other programs
					} else if wire.UDPChecksumOK(rest, ip.Src, ip.Dst) {
						right++
					} else {
						wrong++
					}
				})
				if err != nil || n == 0 {
					break
				}
			}
			if right+wrong != count || offload == "off" && wrong > 0 || offload == "on" && wrong < count/2 {
				t.Errorf("%s, offload %s: %d are right and %d are not, of %d", name, offload, right, wrong, count)
			}
			socket.SetReadDeadline(time.Now().Add(time.Minute))
			b := make([]byte, 400)
			for i := range count {
				if _, _, err := socket.ReadFrom(b); err != nil {
					t.Errorf("%s, offload %s: the kernel has delivered %d of %d: %v", name, offload, i, count, err)
					break
				}
			}
			r.Close()
			socket.Close()
		}
	}
	c := Config{Method: "xdp", Interface: "lo", LeaveChecksum: true, Streams: []Stream{{Template: frame.UDP(false), Count: 1}}}
	if _, err := Run(t.Context(), c); err == nil {
		t.Error("xdp leaves no checksums")
	}
}

// If a link stays down for longer than a second the run ends with an error, unless its patience is longer.
func TestPatienceWithALink(t *testing.T) {
	for _, m := range []string{"packet", "ring"} {
		for _, patience := range []time.Duration{0, time.Minute} {
			a, b := netns.Veth(t, 1500, 1)
			template, err := frame.Parse("eth src=02:00:00:00:00:01 dst=02:00:00:00:00:02; ip src=10.0.0.1 dst=10.0.0.2; udp")
			if err != nil {
				t.Fatal(err)
			}
			const frames = 3000
			down := func() error {
				netns.IP(t, "link", "set", b, "down")
				time.AfterFunc(1500*time.Millisecond, func() { netns.IP(t, "link", "set", b, "up") })
				return nil
			}
			r, err := Run(t.Context(), Config{
				Method: m, Interface: a, Patience: patience, Ready: down,
				Streams: []Stream{{Template: template, Rate: pace.Rate{PerSecond: 5000}, Count: frames}},
			})
			switch {
			case patience == 0 && (err == nil || !strings.Contains(err.Error(), "no frame could leave for 1s")):
				t.Errorf("%s: %v; %+v", m, err, r.Counters)
			case patience > 0 && (err != nil || r.Counters.Handed+r.Counters.Refused != frames):
				t.Errorf("%s with patience: %v; %+v", m, err, r.Counters)
			}
		}
	}
}

// A rate can be a share of the speed that the interface reports (10 Gb/s on a veth). Sending in bursts does not
// change the rate.
func TestShareOfTheLineInBursts(t *testing.T) {
	a, _ := netns.Veth(t, 1500, 1)
	template, err := frame.Parse("eth src=02:00:00:00:00:01 dst=02:00:00:00:00:02; ip src=10.0.0.1 dst=10.0.0.2; udp")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Config{
		Method: "packet", Interface: a, Time: 500 * time.Millisecond,
		// 0.1 % of 10 Gb/s is 10 Mb/s: 1000 frames per second with 1250 bytes each on the wire.
		Streams: []Stream{{Template: template, Rate: rate(t, "0.1%"), Spacing: pace.Spacing{Burst: 50}, Sizes: frame.FixedSize(1230)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Streams[0]; s.Frames != 500 || s.Asked != "10MbpsL1" || s.Gaps.P50 != 0 || s.Gaps.Max < 10*time.Millisecond {
		t.Errorf("%+v", s)
	}
}
