//go:build linux

package rfc2544

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"loam/gen"
	"loam/gen/frame"
	"loam/gen/sink"
	"loam/internal/netns"
	"loam/link"
	"loam/link/afpacket"
	"loam/link/shape"
	"loam/wire"
)

func TestMain(m *testing.M) { netns.Main(m) }

// The search finds any limit within its resolution, with no more trials than bisection needs. It tries the top rate
// first.
func TestSearch(t *testing.T) {
	for _, limit := range []float64{0, 1, 333, 500, 999, 1000, 5000} {
		s := newSearch(1000, 5)
		trials := 0
		for load, ok := s.next(); ok; load, ok = s.next() {
			if trials == 0 && load != 1000 {
				t.Errorf("the first trial is at %v", load)
			}
			s.record(load, load <= limit)
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

// bridge simulates a device under test: it forwards frames from one interface to another at a limited rate.
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
	done := make(chan struct{}) // closed by the goroutine when it returns
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

// A device with a known rate and queue is measured correctly. At most the device's rate passes without loss, a higher
// load is lost in proportion, and the longest burst without loss equals the queue.
func TestDeviceWithALimit(t *testing.T) {
	a, in := netns.Veth(t, 1500, 1)
	out, b := netns.Veth(t, 1500, 1)
	const size, pps, queue = 512, 2000, 50
	// The simulated device counts frames without the frame check sequence.
	const bytes = size - frame.FCSLen
	bridge(t, in, out, shape.Limit{Rate: pps * 8 * bytes, Burst: bytes, Queue: queue * bytes})
	var trials int
	r, err := Run(t.Context(), Options{
		TX: a, RX: b, Template: template(t), Sizes: []int{size}, Trial: 300 * time.Millisecond, Settle: 100 * time.Millisecond,
		Top: 4 * pps, Resolution: 0.1, Repeats: 1,
		Progress: func(Trial) { trials++ },
	})
	if err != nil || len(r.Rows) != 1 || trials == 0 {
		t.Fatalf("%+v, %d trials, %v", r, trials, err)
	}
	row := r.Rows[0]
	// During a trial the device also accepts frames into its queue, which leave after the trial.
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

// A wire loses nothing, so the top rate passes unless this machine is too slow.
func TestWire(t *testing.T) {
	a, b := netns.Veth(t, 1500, 1)
	o := Options{TX: a, RX: b, Template: template(t)}.withDefaults()
	o.Settle = 100 * time.Millisecond
	got, err := o.trial(t.Context(), BackToBack, 64, load{count: 500})
	if err != nil || !got.Passed() || got.Sent != 500 || got.Loss() != 0 || got.Latency.Count != 500 {
		t.Errorf("%+v, %v", got, err)
	}
	o.NextHop = wire.MAC{}
	o.RX = "nosuch0"
	if _, err := o.trial(t.Context(), LatencyOf, 64, load{pps: 1000, span: time.Second}); err == nil || !strings.Contains(err.Error(), "nosuch0") {
		t.Error(err)
	}
}

// If no frame arrives, the tests do not start.
func TestNothingArrives(t *testing.T) {
	a, _ := netns.Veth(t, 1500, 1)
	b, _ := netns.Veth(t, 1500, 1)
	r, err := Run(t.Context(), Options{
		TX: a, RX: b, Template: template(t), Sizes: []int{64, 512}, Settle: 50 * time.Millisecond,
		Progress: func(trial Trial) { t.Errorf("%s is tested", trial.Test) },
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
			Size: 64, Top: 1e6, Throughput: 1e6, AtLeast: true,
			Latency: []sink.Latency{{Count: 10, Mean: 1500, P50: 1000, P999: 4000, Max: 9000}, {Count: 10, Mean: 2500, P50: 2000, P999: 3000, Max: 8000}},
			Loss:    []Loss{{100, 0.25, "the sender could not keep the rate"}, {90, 0, ""}}, Bursts: []Burst{{100, false}, {200, true}},
			Trials: []Trial{{Test: Throughput}, {Test: FrameLoss, Slow: "the sender could not keep the rate"}, {Test: FrameLoss}},
		},
		{Size: 1518, Top: 1000},
	}}
	const want = `RFC 2544, from eth0 to eth1: trials of 1 s, 2 repetition(s)

  frame  tried up to   throughput  on the wire  of what was tried  latency mean  median  99.9 %   max  burst mean  least   most
     64    1.00 Mpps  ≥ 1.00 Mpps   ≥ 672 Mb/s            100.0 %          2 µs  1.5 µs    4 µs  9 µs       ≥ 150    100  ≥ 200
   1518    1.00 kpps        0 pps        0 b/s              0.0 %             -       -       -     -           -      -      -

frames lost, at parts of the highest rate
  frame           100 %     90 %  80 %  70 %  60 %  50 %  40 %  30 %  20 %  10 %
     64  slow, 25.000 %  0.000 %     -     -     -     -     -     -     -     -
   1518               -        -     -     -     -     -     -     -     -     -
frames of 64 bytes, loss: in 1 of 2 trials the sender could not keep the rate; they say nothing about the device, which may be better than this
`
	var b bytes.Buffer
	if err := r.Table(&b); err != nil || b.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, b.String(), want)
	}
}

// A burst sent below the top rate, or lost in this machine's own ring, does not count as passed.
func TestSlowBurstsDoNotPass(t *testing.T) {
	sent, got := gen.Report{}, sink.Report{}
	for _, test := range []struct {
		elapsed time.Duration
		dropped uint64
		passed  bool
	}{{10 * time.Millisecond, 0, true}, {10500 * time.Microsecond, 0, true}, {12 * time.Millisecond, 0, false}, {10 * time.Millisecond, 1, false}} {
		trial := Trial{Sent: 10_000, Received: 10_000, Elapsed: test.elapsed}
		got.Dropped = test.dropped
		l := load{count: 10_000, least: 1e6}
		if trial.Slow = l.slow(&trial, &sent, &got); trial.Passed() != test.passed {
			t.Errorf("%+v: %+v", test, trial)
		}
	}
}

// Trials in which this machine is too slow are repeated, and all of them are in the report.
func TestSlowTrialsAreReported(t *testing.T) {
	a, b := netns.Veth(t, 1500, 1)
	o := Options{TX: a, RX: b, Template: template(t)}.withDefaults()
	o.Settle = 10 * time.Millisecond
	row := Row{Size: 64}
	// No machine reaches the rate of 1e12 frames per second.
	got, err := o.attempt(t.Context(), &row, BackToBack, load{count: 100, least: 1e12})
	if err != nil || got.Slow == "" || got.Passed() || len(row.Trials) != attempts {
		t.Errorf("%+v, %+v, %v", got, row.Trials, err)
	}
	var text bytes.Buffer
	row.slowTrials(&text)
	if want := "frames of 64 bytes, back-to-back: in 3 of 3 trials the sender could not keep the rate"; !strings.HasPrefix(text.String(), want) {
		t.Errorf("%s\nwant %s", text.String(), want)
	}
}
