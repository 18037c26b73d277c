//go:build linux

package rfc2544

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"loam/gen/frame"
	"loam/gen/sink"
	"loam/internal/netns"
	"loam/link"
	"loam/link/afpacket"
	"loam/link/shape"
	"loam/wire"
)

func TestMain(m *testing.M) { netns.Main(m) }

// The search finds any limit within its resolution, with no more trials than
// halving takes, and tries the top first.
func TestSearch(t *testing.T) {
	for _, limit := range []float64{0, 1, 333, 500, 999, 1000, 5000} {
		s := newSearch(1000, 5)
		trials := 0
		for load, ok := s.next(); ok; load, ok = s.next() {
			if trials == 0 && load != 1000 {
				t.Errorf("the first trial is at %v", load)
			}
			s.told(load, load <= limit)
			if trials++; trials > 9 {
				t.Fatalf("limit %v: no end", limit)
			}
		}
		if want := min(limit, 1000); s.low > want || s.low < want-5 {
			t.Errorf("limit %v: found %v", limit, s.low)
		}
		if limit >= 1000 && trials != 1 {
			t.Errorf("%d trials where the top passes", trials)
		}
	}
}

// bridge is a device under test: it passes frames from one interface to another,
// at a rate.
func bridge(t *testing.T, from, to string, limit shape.Limit) {
	t.Helper()
	open := func(name string) *afpacket.Device {
		d, err := afpacket.Open(afpacket.Config{Interface: name, NoOffloads: true, Promiscuous: true})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	in, out := open(from), shape.New(open(to), shape.Config{Send: limit})
	done := make(chan struct{}) // closed by the goroutine at its end
	go func() {
		defer close(done)
		fs := make([]*link.Frame, link.BatchSize)
		q := out.Queues()[0]
		for {
			n, err := in.Queues()[0].Recv(fs)
			if err != nil {
				return
			}
			for rest := fs[:n]; len(rest) > 0; {
				sent, err := q.Send(rest)
				if rest = rest[sent:]; err != nil {
					link.FreeAll(rest)
					return
				}
				if len(rest) > 0 {
					<-q.Room()
				}
			}
		}
	}()
	t.Cleanup(func() {
		in.Close()
		<-done
		out.Close()
	})
}

func template(t *testing.T) *frame.Template {
	t.Helper()
	tpl, err := frame.Parse("eth dst=02:00:00:00:00:99; ip src=198.18.0.1 dst=198.19.0.1; udp sport=49184 dport=7")
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// A device with a known rate and a known queue is measured: no more than its rate
// passes without loss, what is offered above is lost in proportion, and a burst is
// as long as its queue.
func TestDeviceWithALimit(t *testing.T) {
	a, in := netns.Veth(t, 1500, 1)
	out, b := netns.Veth(t, 1500, 1)
	const size, pps, queue = 512, 2000, 50
	// The device does not see the frame check sequence.
	const bytes = size - frame.FCSLen
	bridge(t, in, out, shape.Limit{Rate: pps * 8 * bytes, Burst: bytes, Queue: queue * bytes})
	var trials int
	r, err := Run(t.Context(), Options{
		TX: a, RX: b, Template: template(t), Sizes: []int{size}, Trial: 300 * time.Millisecond, Settle: 100 * time.Millisecond,
		Top: 4 * pps, Resolution: 0.1, Repeats: 1,
		Progress: func(string, Trial) { trials++ },
	})
	if err != nil || len(r.Rows) != 1 || trials == 0 {
		t.Fatalf("%+v, %d trials, %v", r, trials, err)
	}
	row := r.Rows[0]
	// In a trial its queue takes frames too, and they come later.
	const most = pps * (1 + float64(queue)/(pps*0.3)) * 1.1
	if row.Throughput > most {
		t.Errorf("throughput %v of a device with %v", row.Throughput, pps)
	}
	if len(row.Loss) < 3 || row.Loss[0].Percent != 100 || row.Loss[0].Lost < 0.5 || row.Loss[0].Lost < row.Loss[2].Lost {
		t.Errorf("loss %+v", row.Loss)
	}
	if len(row.Bursts) != 1 {
		t.Errorf("bursts %v", row.Bursts)
	}
	if row.Throughput > 0 && (len(row.Latency) != 1 || row.Latency[0].Count == 0) {
		t.Errorf("latency %+v", row.Latency)
	}
}

// A wire loses nothing: where our own side keeps the rate, the top passes.
func TestWire(t *testing.T) {
	a, b := netns.Veth(t, 1500, 1)
	o := Options{TX: a, RX: b, Template: template(t)}.withDefaults()
	o.Settle = 100 * time.Millisecond
	got, err := o.trial(t.Context(), 64, math.Inf(1), 0, 500)
	if err != nil || !got.Passed() || got.Sent != 500 || got.Loss() != 0 || got.Latency.Count != 500 {
		t.Errorf("%+v, %v", got, err)
	}
	o.NextHop = wire.MAC{}
	o.RX = "nosuch0"
	if _, err := o.trial(t.Context(), 64, 1000, time.Second, 0); err == nil || !strings.Contains(err.Error(), "nosuch0") {
		t.Error(err)
	}
}

// Where nothing arrives, nothing is searched for.
func TestNothingArrives(t *testing.T) {
	a, _ := netns.Veth(t, 1500, 1)
	b, _ := netns.Veth(t, 1500, 1)
	r, err := Run(t.Context(), Options{
		TX: a, RX: b, Template: template(t), Sizes: []int{64, 512}, Settle: 50 * time.Millisecond,
		Progress: func(test string, _ Trial) { t.Errorf("%s is tested", test) },
	})
	if err == nil || !strings.Contains(err.Error(), "nothing that is sent by "+a+" arrives at "+b) || len(r.Rows) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestUnknownTest(t *testing.T) {
	if _, err := Run(t.Context(), Options{Tests: []string{"speed"}}); err == nil || !strings.Contains(err.Error(), `there is no test "speed"`) {
		t.Error(err)
	}
}

func TestTable(t *testing.T) {
	r := Report{TX: "eth0", RX: "eth1", Tests: Tests, Trial: time.Second, Repeats: 2, Rows: []Row{
		{
			Size: 64, Top: 1e6, Throughput: 750000, Slow: "the sender could not keep the rate",
			Latency: []sink.Latency{{Count: 10, Mean: 1500, P50: 1000, P999: 4000, Max: 9000}, {Count: 10, Mean: 2500, P50: 2000, P999: 3000, Max: 8000}},
			Loss:    []Loss{{100, 0.25}, {90, 0}}, Bursts: []uint64{100, 200},
		},
		{Size: 1518, Top: 1000},
	}}
	const want = `RFC 2544, from eth0 to eth1: trials of 1s, 2 repetition(s)

  frame  tried up to  throughput  on the wire  of what was tried  latency mean  median  99.9 %  max  burst mean  least  most
     64    1.00 Mpps    750 kpps     504 Mb/s             75.0 %           2µs   1.5µs     4µs  9µs         150    100   200
   1518    1.00 kpps       0 pps        0 b/s              0.0 %             -       -       -    -           -      -     -

frames lost, at parts of the highest rate
  frame     100 %     90 %  80 %  70 %  60 %  50 %  40 %  30 %  20 %  10 %
     64  25.000 %  0.000 %     -     -     -     -     -     -     -     -
   1518         -        -     -     -     -     -     -     -     -     -
frames of 64 bytes: the sender could not keep the rate in some trials, so the device may be better than this
`
	var b bytes.Buffer
	if err := r.Table(&b); err != nil || b.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, b.String(), want)
	}
}
