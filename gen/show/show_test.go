package show

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"loam/gen"
	"loam/gen/method"
	"loam/gen/pace"
	"loam/gen/sink"
)

// The reported state of a run at its middle, and its final report.
var (
	sample = gen.Sample{
		Elapsed: 61500 * time.Millisecond, Over: time.Second,
		Streams: []gen.Flow{{Name: "voice", Frames: 1234567, Bytes: 79012288, PPS: 20000, L2Bits: 10.24e6, L1Bits: 13.44e6}},
		Total:   gen.Flow{Frames: 1234567, Bytes: 79012288, PPS: 20000, L2Bits: 10.24e6, L1Bits: 13.44e6},
	}
	sent = gen.Report{
		Method: "ring", Interface: "eth0", Queues: 1, Elapsed: 10 * time.Second, LinkFrames: 100002,
		Streams: []gen.StreamReport{{
			Flow:  gen.Flow{Name: "voice", Frames: 100000, Bytes: 6400000, PPS: 10000, L2Bits: 5.12e6, L1Bits: 6.72e6, Asked: "10kpps"},
			Error: 0.00012, Gaps: pace.Gaps{Count: 99999, Mean: 100 * time.Microsecond, Max: 2 * time.Millisecond},
			Missed: 3 * time.Millisecond,
		}},
		Total:    gen.Flow{Frames: 100000, Bytes: 6400000, PPS: 10000, L2Bits: 5.12e6, L1Bits: 6.72e6},
		Counters: method.Counters{Handed: 100000, Left: 100000, Kicks: 1563},
	}
	counts99 = sink.Counts{
		Received: 99991, Unique: 99990, Lost: 10, Duplicates: 1, Reordered: 4, Extent: 3,
		Latency: sink.Latency{Count: 99990, Min: 1500, P50: 2100, P99: 90 * time.Microsecond, P999: 2 * time.Millisecond, Max: 3 * time.Second,
			Buckets: []sink.Bucket{{Bound: time.Microsecond}, {Bound: 5 * time.Microsecond, Count: 90000}, {Bound: time.Second, Count: 99989}}},
		Jitter: 450,
	}
	seen = sink.Report{Elapsed: 11 * time.Second, Total: counts99, Other: 7, Runs: 1, Flows: []sink.Flow{{ID: sink.NewID(0, 1, 2), Counts: counts99}},
		Recent: sink.Recent{Over: time.Second, Frames: 9000, PPS: 9000, L2Bits: 4.608e6, Latency: sink.Latency{Count: 9000, P50: 2200, P99: 95 * time.Microsecond, P999: 3 * time.Millisecond, Max: time.Second}}}
)

func TestText(t *testing.T) {
	var b bytes.Buffer
	v := Text{&b}
	v.Update(State{Sent: &sample, Received: &seen})
	v.Update(State{Received: &seen})
	if err := v.Finish(NewResult(&sent, &seen)); err != nil {
		t.Fatal(err)
	}
	const received = "  received 99,991 and 7 without a tag  9.00 kpps, 4.61 Mb/s  lost 10  twice 1  reordered 4  latency 2.2 µs, 99 % below 95 µs, 99.9 % 3 ms\n"
	want := "  1:01.5  sent 1,234,567  20.0 kpps  10.2 Mb/s, 13.4 Mb/s on the wire" + received + "  0:11.0" + received +
		`sent by ring on eth0, 1 queue(s), in 10 s

  stream   frames       rate   asked    off by    layer 2    layer 1  gap mean  deviation  99 %  99.9 %   max
   voice  100,000  10.0 kpps  10kpps  +0.012 %  5.12 Mb/s  6.72 Mb/s    100 µs          0     0       0  2 ms
voice: the machine could not keep the rate for 3 ms

handed over 100,000, left 100,000, refused 0; waited for room 0 times, for buffers 0, for the link 0; 1,563 system calls
eth0 itself counted 100,002 frames sent

received in 11 s

  stream/queue/flow  frames  lost  twice  reordered  by at most  latency min  median   99 %  99.9 %  max  jitter
              0/1/2  99,991    10      1          4           3       1.5 µs  2.1 µs  90 µs    2 ms  3 s  450 ns

latencies
    up to 5 µs        90,000   90.01 %  ████████████████████████████████████████
     up to 1 s         9,989    9.99 %  ████
        longer             1    0.00 %

lost of all that was sent: 10
7 frames had no tag
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// Values that are easily misread come with an explanation.
func TestTableRemarks(t *testing.T) {
	trains, left := sent, seen
	trains.Method, trains.LinkFrames = "udpgso", 5000
	left.Passed = 3
	var b bytes.Buffer
	if err := Table(&b, NewResult(&trains, &left)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"eth0 itself counted 5,000 frames sent, where a run of datagrams that is cut up behind it is one\n",
		"3 packets were left to the kernel, of a VLAN or of several frames: they may be among the lost, and --method ring counts them\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// Each line of output is one JSON object. The last one is the report.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	v := JSON{&b}
	v.Update(State{Sent: &sample})
	v.Update(State{Received: &seen})
	v.Finish(NewResult(&sent, &seen))
	var events []string
	for line := range strings.Lines(b.String()) {
		var o struct {
			Event    string
			Sent     *gen.Report
			Received *sink.Report
			Lost     *int64
		}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, o.Event)
		if o.Event == "report" && (*o.Lost != 10 || o.Sent.Total.Frames != 100000 || o.Received.Flows[0].ID.Queue() != 1) {
			t.Errorf("%s", line)
		}
	}
	if got := strings.Join(events, " "); got != "sample sample report" {
		t.Error(got)
	}
}

func TestPrometheus(t *testing.T) {
	p, err := NewPrometheus("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	get := func() string {
		r, err := http.NewRequest("GET", "/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		w := &recorder{}
		p.server.Handler.ServeHTTP(w, r)
		return w.String()
	}
	if text := get(); strings.Contains(text, "loam_gen_sent") {
		t.Errorf("figures before there are any:\n%s", text)
	}
	p.Update(State{Sent: &sample, Received: &seen})
	text := get()
	for _, want := range []string{
		`loam_gen_sent_frames_total{stream="voice"} 1.234567e+06`,
		`loam_gen_lost_frames_total{flow="0/1/2",run="0000"} 10`,
		`loam_gen_other_frames_total 7`,
		`loam_gen_latency_seconds_bucket{le="5e-06"} 90000`,
		`loam_gen_latency_seconds_bucket{le="+Inf"} 99990`,
		`loam_gen_latency_seconds_count 99990`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if err := p.Finish(Result{}); err != nil {
		t.Error(err)
	}
}

// recorder is an http.ResponseWriter.
type recorder struct{ bytes.Buffer }

func (r *recorder) Header() http.Header { return http.Header{} }
func (r *recorder) WriteHeader(int)     {}

// An invalid address is an error at once.
func TestPrometheusAddress(t *testing.T) {
	if _, err := NewPrometheus("nowhere:x"); err == nil {
		t.Error("no error")
	}
}

// file is a file in memory to which a plot is written.
type file struct {
	bytes.Buffer
	closed bool
}

func (f *file) Close() error {
	f.closed = true
	return nil
}

var _ io.WriteCloser = (*file)(nil)

func TestPlot(t *testing.T) {
	var f file
	p := &Plot{W: &f}
	for i := range 5 {
		s, r := sample, seen
		s.Elapsed, r.Elapsed = time.Duration(i)*time.Second, time.Duration(i)*time.Second
		p.Update(State{&s, &r})
	}
	if err := p.Finish(Result{}); err != nil || !f.closed {
		t.Error(err, f.closed)
	}
	if text := f.String(); !strings.Contains(text, "<svg") || !strings.Contains(text, "received") {
		t.Errorf("%.200s", text)
	}
	var empty file
	if err := (&Plot{W: &empty}).Finish(Result{}); err != nil || !strings.Contains(empty.String(), "<svg") {
		t.Error("a run without a sample has no plot:", err)
	}
}

// The live view shows the state, and q asks to end the run.
func TestScreen(t *testing.T) {
	asked := 0
	var m tea.Model = screen{stop: func() { asked++ }}
	if text := m.View().Content; text != "" {
		t.Errorf("before anything has happened it shows %q", text)
	}
	for range 100 {
		m, _ = m.Update(State{&sample, &seen})
	}
	text := m.View().Content
	for _, want := range []string{"voice", "1,234,567", "lost 10", "99.9 % 2 ms", "this second: median 2.2 µs", "9.00 kpps", "up to 5 µs █▁▁ longer", "q ends the run", strings.Repeat("█", widest)} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	m, _ = m.Update(tea.KeyPressMsg{Code: 'q', Text: "q"})
	if asked != 1 || !strings.Contains(m.View().Content, "ending") {
		t.Errorf("asked %d times\n%s", asked, m.View().Content)
	}
}

// In a small terminal nothing is truncated: columns and streams without room are omitted, and received values take
// several lines.
func TestScreenOfAnySize(t *testing.T) {
	many := sample
	for i := range 30 {
		f := sample.Streams[0]
		f.Name = fmt.Sprintf("a stream of a long name %d", i)
		many.Streams = append(many.Streams, f)
	}
	for _, size := range []struct{ width, height int }{{80, 24}, {60, 12}, {40, 24}, {40, 16}, {200, 60}} {
		var m tea.Model = screen{}
		m, _ = m.Update(tea.WindowSizeMsg{Width: size.width, Height: size.height})
		for range 100 {
			m, _ = m.Update(State{&many, &seen})
		}
		text := m.View().Content
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if len(lines) > size.height {
			t.Errorf("%v: %d lines\n%s", size, len(lines), text)
		}
		for _, l := range lines {
			if n := utf8.RuneCountInString(l); n > size.width {
				t.Errorf("%v: a line of %d\n%s", size, n, text)
				break
			}
		}
		for _, want := range []string{"rate", "voice", "lost 10", "reordered", "jitter", "q ends the run"} {
			if !strings.Contains(text, want) {
				t.Errorf("%v: no %q in\n%s", size, want, text)
			}
		}
	}
}

// The live view ends with the run and prints the table.
func TestLive(t *testing.T) {
	var out bytes.Buffer
	l := NewLive(&bytes.Buffer{}, &out, nil, func() {})
	shown := make(chan error, 1)
	go func() { shown <- l.Show() }()
	l.Update(State{&sample, nil})
	if err := l.Finish(NewResult(&sent, nil)); err != nil {
		t.Error(err)
	}
	if err := <-shown; err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "sent by ring on eth0") {
		t.Errorf("%q", out.String())
	}
}

// All calls all its views and returns the first error.
func TestAll(t *testing.T) {
	var b bytes.Buffer
	a := All{failing{}, JSON{&b}}
	a.Update(State{Sent: &sample})
	if err := a.Finish(Result{Lost: -1}); err != errBroken || strings.Count(b.String(), "\n") != 2 {
		t.Errorf("%v, %s", err, b.String())
	}
}

var errBroken = errors.New("broken")

type failing struct{}

func (failing) Update(State)        {}
func (failing) Finish(Result) error { return errBroken }

func TestScaled(t *testing.T) {
	for n, want := range map[float64]string{0: "0 x", 7: "7 x", 1.5: "1.50 x", 999: "999 x", 999.9: "1.00 kx", 12345: "12.3 kx", 1.488e7: "14.9 Mx", 9.9999e8: "1.00 Gx", 4e14: "400 Tx"} {
		if got := scaled(n, "x"); got != want {
			t.Errorf("%v: %q, want %q", n, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := count(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// A duration that rounds up to a thousand is shown in the next larger unit.
func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 999: "999 ns", 1500: "1.5 µs", 999_400: "999 µs", 999_600: "1 ms", 547_000: "547 µs",
		2_560_000: "2.56 ms", 999_600_000: "0.9996 s", 3 * time.Second: "3 s", 61_234 * time.Millisecond: "61.23 s",
	} {
		if got := Span(d); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
	}
}

// The keys of the live view change the rates of a run, and a rate that is refused is explained.
func TestKeys(t *testing.T) {
	c := gen.NewControl()
	k := keys{control: c}
	k.press("+", "+") // before the run begins, there is no rate to change
	c.Begin("lo", []gen.Stream{{Name: "voice", Rate: pace.Rate{PerSecond: 1000}}, {Name: "bulk", Rate: pace.Rate{PerSecond: 10}}}, func(*gen.Rates) error { return nil })
	type line struct{ keys, factor, voice, bulk, shown string }
	for _, l := range []line{
		{"+", "1.1", "1kpps", "10pps", "at 110 % of the rates"},
		{"-", "1", "1kpps", "10pps", "+ - faster, slower"},
		{"down", "0.909", "1kpps", "10pps", "at 90.91 % of the rates"},
		{"space", "0", "1kpps", "10pps", "paused"},
		{"space", "0.909", "1kpps", "10pps", "at 90.91 %"},
		{"0", "1", "1kpps", "10pps", "q ends the run"},
		{"r 5 0 p p s", "1", "1kpps", "10pps", "rate for all streams, or NAME RATE: 50pps▏"},
		{"backspace", "1", "1kpps", "10pps", "50pp▏"},
		{"s enter", "1", "50pps", "50pps", "r a rate"},
		{"r v o i c e space 9 k p p s enter", "1", "9kpps", "50pps", "r a rate"},
		{"r x enter", "1", "9kpps", "50pps", `"x" is not a rate; allowed: max;`},
		{"r 7 esc", "1", "9kpps", "50pps", "r a rate"},
	} {
		for _, name := range strings.Fields(l.keys) {
			text := name
			if name == "space" {
				text = " "
			}
			k.press(name, text)
		}
		s, err := c.State()
		if got := fmt.Sprintf("%.3g %s %s", s.Factor, s.Streams[0].Rate, s.Streams[1].Rate); err != nil || got != l.factor+" "+l.voice+" "+l.bulk {
			t.Errorf("%s: %s, %v", l.keys, got, err)
		}
		if shown := strings.Join(k.lines(100), "\n"); !strings.Contains(shown, l.shown) {
			t.Errorf("%s:\n%s", l.keys, shown)
		}
	}
}
