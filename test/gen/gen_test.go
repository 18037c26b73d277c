//go:build linux

package gen

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loam/internal/netns"
	"loam/internal/race"
)

func TestMain(m *testing.M) { netns.Main(m) }

// build builds the command, without the race detector, which would find nothing here.
func build(t testing.TB) string {
	t.Helper()
	if race.Enabled {
		t.Skip("the command is built without the race detector")
	}
	name := filepath.Join(t.TempDir(), "loam")
	if out, err := exec.Command("go", "build", "-o", name, "loam/cmd/loam").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// lab is a veth pair between two namespaces, and the path of the loam command.
type lab struct {
	*netns.Far
	loam      string
	near, far string
	dst       string
}

func newLab(t testing.TB) *lab {
	l := &lab{Far: netns.NewFar(t)}
	l.loam = build(t)
	var n int
	l.near, l.far, n = l.Wire(t)
	l.dst = fmt.Sprintf("10.%d.0.2", n)
	return l
}

// process is a running "loam gen".
type process struct {
	*exec.Cmd
	out  output
	errs bytes.Buffer
}

// output is the output of a process so far.
type output struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// lastLine returns the last complete line.
func (o *output) lastLine() string {
	lines := strings.Split(o.String(), "\n")
	if len(lines) < 2 {
		return ""
	}
	return lines[len(lines)-2]
}

// start runs "loam gen" at the near or the far end.
func (l *lab) start(t testing.TB, far bool, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(l.loam, append([]string{"gen"}, args...)...)}
	p.Stdout, p.Stderr = &p.out, &p.errs
	start := func() {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if far {
		l.Do(t, start)
	} else {
		start()
	}
	return p
}

// report is the last line of the output of --json.
type report struct {
	Event string
	Sent  struct {
		Total    struct{ Frames uint64 }
		Elapsed  int64 `json:"elapsed_ns"`
		Counters struct{ Handed, Left, Refused uint64 }
	}
	Received struct {
		Total struct{ Received, Unique, Lost, Duplicates, Reordered uint64 }
		// Dropped counts frames that found no room in the sink's ring.
		Dropped uint64
	}
	Lost *int64
}

// last waits for the end of a run with --json and returns its last line.
func (p *process) last(t testing.TB) (r report) {
	t.Helper()
	if err := p.Wait(); err != nil {
		t.Fatalf("%v: %v\n%s", p.Args, err, p.errs.String())
	}
	if err := json.Unmarshal([]byte(p.out.lastLine()), &r); err != nil || r.Event != "report" {
		t.Fatalf("%v: %v\n%s", p.Args, err, p.out.String())
	}
	return r
}

// settle waits until a sink has reported the given number of frames, including those that found no
// room.
func (p *process) settle(t testing.TB, frames uint64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var r report
		json.Unmarshal([]byte(p.out.lastLine()), &r) // there may be no complete line yet
		if r.Received.Total.Received+r.Received.Dropped >= frames {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%d frames were sent, and a minute later the sink says\n%s", frames, p.out.lastLine())
			return
		}
	}
}

// seconds returns a duration that an environment variable can override.
func seconds(t testing.TB, variable string, otherwise int) string {
	t.Helper()
	n := otherwise
	if s := os.Getenv(variable); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatalf("%s=%s is no number", variable, s)
		}
	}
	return fmt.Sprintf("%ds", n)
}

// At half of the rate that this machine reaches, the generator and the sink lose nothing. They are two
// processes in two namespaces, with default settings. If the machine leaves the sink without a
// processor for longer than its ring lasts, the sink drops frames. It must then report their exact
// number, and the run fails if a duration was requested.
//
//	LOAM_GEN_SECONDS=60 go test ./test/gen -run HalfRate
func TestHalfRateLosesNothing(t *testing.T) {
	l := newLab(t)
	sink := l.start(t, true, "sink", "--dev", l.far, "--json")
	awaitSink(t, l)
	top := l.start(t, false, "--dev", l.near, "--dst", l.dst, "--rate", "max", "--time", "1s", "--json", "--bare").last(t)
	sink.Process.Signal(os.Interrupt)
	sink.last(t) // waits for the end; frames dropped while the highest rate is measured do not count
	sink = l.start(t, true, "sink", "--dev", l.far, "--json")
	awaitSink(t, l)
	rate := float64(top.Sent.Total.Frames) / (float64(top.Sent.Elapsed) / 1e9) / 2
	sent := l.start(t, false, "--dev", l.near, "--dst", l.dst, "--rate", fmt.Sprintf("%.0fpps", rate),
		"--time", seconds(t, "LOAM_GEN_SECONDS", 2), "--flows", "16", "--json").last(t)
	n := sent.Sent.Total.Frames
	sink.settle(t, n)
	sink.Process.Signal(os.Interrupt)
	got := sink.last(t)
	c, dropped := got.Received.Total, got.Received.Dropped
	t.Logf("%.0f frames a second: %d sent, %d received, %d dropped by the sink", rate, n, c.Received, dropped)
	if n == 0 || sent.Sent.Counters.Left != n || c.Received+dropped != n || c.Unique != c.Received || c.Lost > dropped || c.Duplicates != 0 || c.Reordered != 0 {
		t.Errorf("sent %+v, received %+v, dropped %d", sent.Sent, c, dropped)
	}
	if dropped != 0 && os.Getenv("LOAM_GEN_SECONDS") != "" {
		t.Errorf("%d frames found no room with the sink", dropped)
	}
}

// awaitSink waits until the sink's socket exists.
func awaitSink(t testing.TB, l *lab) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		sockets := ""
		l.Do(t, func() {
			b, err := os.ReadFile("/proc/thread-self/net/packet")
			if err != nil {
				t.Fatal(err)
			}
			sockets = string(b)
		})
		if strings.Count(sockets, "\n") > 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the sink does not listen")
		}
	}
}

// With --rx, one process sends and receives, so it knows how many frames were lost.
func TestBothEnds(t *testing.T) {
	netns.Need(t)
	loam := build(t)
	a, b := netns.Veth(t, 1500, 1)
	netns.IP(t, "addr", "add", "10.200.0.1/24", "dev", a)
	l := &lab{loam: loam}
	r := l.start(t, false, "--dev", a, "--dst", "10.200.0.2", "--dst-mac", "02:00:00:00:00:99", "--rx", b, "--rate", "20kpps", "--count", "5000", "--json").last(t)
	if r.Lost == nil || *r.Lost != 0 || r.Sent.Total.Frames != 5000 || r.Received.Total.Unique != 5000 {
		t.Errorf("%+v", r)
	}
}

// A sink that reflects lets the generator measure the round-trip time.
func TestRoundTrip(t *testing.T) {
	l := newLab(t)
	sink := l.start(t, true, "sink", "--dev", l.far, "--reflect", "--json")
	awaitSink(t, l)
	r := l.start(t, false, "--dev", l.near, "--dst", l.dst, "--rx", l.near, "--rate", "5kpps", "--count", "1000", "--sport", "7777", "--json").last(t)
	sink.Process.Signal(os.Interrupt)
	if got := sink.last(t).Received.Total; got.Unique != 1000 || got.Lost != 0 {
		t.Errorf("there: %+v", got)
	}
	if r.Lost == nil || *r.Lost != 0 || r.Received.Total.Unique != 1000 || r.Received.Total.Duplicates != 0 {
		t.Errorf("and back: %+v", r)
	}
}

// An xdp sink receives frames of every queue. If the sender is restarted, the sink counts no frame as
// lost or duplicated.
func TestSinkOfQueues(t *testing.T) {
	l := newLab(t)
	sink := l.start(t, true, "sink", "--dev", l.far, "--method", "xdp", "--json")
	for end := time.Now().Add(20 * time.Second); sink.out.lastLine() == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the sink says nothing: %s", sink.errs.String())
		}
	}
	const each = 1000
	for run := range uint64(2) {
		l.start(t, false, "--dev", l.near, "--dst", l.dst, "--method", "xdp", "--queues", "2", "--rate", "20kpps", "--count", fmt.Sprint(each), "--json").last(t)
		sink.settle(t, (run+1)*each)
	}
	sink.Process.Signal(os.Interrupt)
	if got := sink.last(t).Received.Total; got.Unique != 2*each || got.Lost != 0 || got.Duplicates != 0 {
		t.Errorf("%+v", got)
	}
}

// A sink whose device is removed reports it and exits.
func TestSinkWithoutDevice(t *testing.T) {
	l := newLab(t)
	for _, m := range []string{"ring", "tc"} {
		const dev = "loamgone"
		netns.IP(t, "link", "add", dev, "type", "veth", "peer", "name", dev+"2")
		netns.IP(t, "link", "set", dev, "up")
		p := l.start(t, false, "sink", "--dev", dev, "--method", m, "--json")
		for end := time.Now().Add(20 * time.Second); p.out.lastLine() == ""; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				p.Process.Kill()
				t.Fatalf("%s: no line: %s", m, p.errs.String())
			}
		}
		netns.IP(t, "link", "del", dev)
		over := time.AfterFunc(20*time.Second, func() { p.Process.Kill() })
		err := p.Wait()
		if over.Stop(); err == nil || !strings.Contains(p.errs.String(), dev+" is gone") {
			t.Errorf("%s: %v: %s", m, err, p.errs.String())
		}
	}
}

// "loam gen" replays a capture file completely, and sends the streams that a YAML file describes.
func TestReplayAndRun(t *testing.T) {
	l := newLab(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "plan.yaml")
	text := fmt.Sprintf("interface: %s\nmethod: packet\nstreams:\n  - {template: eth; ip dst=%s; udp dport=9, rate: 10kpps, count: 500}\n  - {template: eth; ip dst=%s; tcp dport=9, rate: 5kpps, count: 100, size: 200-300}\n", l.near, l.dst, l.dst)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	sink := l.start(t, true, "sink", "--dev", l.far, "--json", "--method", "packet", "--device-time")
	awaitSink(t, l)
	capture := filepath.Join(dir, "all.pcap")
	captured := dump(t, l, capture, 600)
	if r := l.start(t, false, "run", file, "--json").last(t); r.Sent.Total.Frames != 600 {
		t.Errorf("%+v", r.Sent)
	}
	captured()
	if r := l.start(t, false, "replay", capture, "--dev", l.near, "--rate", "50kpps", "--json").last(t); r.Sent.Total.Frames != 600 {
		t.Errorf("replayed %+v", r.Sent)
	}
	sink.settle(t, 1200)
	sink.Process.Signal(os.Interrupt)
	// Frames that are sent again arrive twice.
	if c := sink.last(t).Received.Total; c.Received != 1200 || c.Unique != 600 || c.Duplicates != 600 || c.Lost != 0 {
		t.Errorf("%+v", c)
	}
	if text := "takes no times of frames by itself: the kernel's are used"; !strings.Contains(sink.errs.String(), text) {
		t.Errorf("a veth has no clock, and the sink says %q", sink.errs.String())
	}
}

// dump runs tcpdump, which captures frames of the generator at the far end. The returned function waits
// for its end.
func dump(t testing.TB, l *lab, file string, frames int) (wait func()) {
	t.Helper()
	c := exec.Command("tcpdump", "-i", l.far, "-w", file, "-U", "-Z", "root", "-s", "0", "-B", "16384", "-c", strconv.Itoa(frames), "dst port 9")
	errs, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.Do(t, func() { err = c.Start() })
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(errs)
	if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "listening") {
		t.Fatalf("%q, %v", line, err)
	}
	return func() {
		timer := time.AfterFunc(20*time.Second, func() { c.Process.Kill() })
		defer timer.Stop()
		io.Copy(io.Discard, r)
		if err := c.Wait(); err != nil {
			t.Fatal("tcpdump has not seen all frames: ", err)
		}
	}
}

// However a run ends, also if it is killed at a random time, the interface is left unchanged. The test
// makes 10 runs, or the number in LOAM_GEN_KILLS.
//
//	LOAM_GEN_KILLS=100 go test ./test/gen -run Killed
func TestKilledRunsLeaveNothing(t *testing.T) {
	l := newLab(t)
	runs, _ := strconv.Atoi(strings.TrimSuffix(seconds(t, "LOAM_GEN_KILLS", 10), "s"))
	before := state(t, l)
	commands := [][]string{
		{"--dev", l.near, "--dst", l.dst, "--method", "ring", "--rate", "50kpps", "--rx", l.near},
		{"--dev", l.near, "--dst", l.dst, "--method", "xdp", "--rate", "50kpps", "--queues", "2"},
		{"sink", "--dev", l.near, "--promiscuous"},
		{"sink", "--dev", l.near, "--method", "packet", "--promiscuous"},
		{"sink", "--dev", l.near, "--method", "xdp", "--promiscuous"},
		{"sink", "--dev", l.near, "--method", "tc", "--promiscuous"},
		{"--dev", l.near, "--dst", l.dst, "--method", "tc", "--rate", "50kpps"},
		{"--dev", l.near, "--dst", l.dst, "--method", "packet", "--qdisc", "--rate", "max"},
		{"bench", "--dev", l.near, "--dst", l.dst, "--time", "250ms"},
	}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for i := range runs {
		args := commands[i%len(commands)]
		p := l.start(t, false, args...)
		time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
		signals := []os.Signal{syscall.SIGKILL, syscall.SIGKILL, os.Interrupt, syscall.SIGQUIT}
		sig := signals[r.IntN(len(signals))]
		p.Process.Signal(sig)
		p.Wait()
		awaitState(t, l, before, fmt.Sprintf("loam gen %s, ended by %v: %s", strings.Join(args, " "), sig, p.errs.String()))
	}
}

// awaitState waits until the state is as before: the kernel detaches a program from an interface a
// moment after its process has ended.
func awaitState(t testing.TB, l *lab, want, what string) {
	t.Helper()
	var now string
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if now = state(t, l); now == want {
			return
		}
	}
	t.Fatalf("%s\nleft\n%s\nwhere there was\n%s", what, now, want)
}

// state returns what can be left behind: interfaces with their flags, promiscuous counts, XDP programs
// and queueing disciplines; addresses; sockets.
func state(t testing.TB, l *lab) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(netns.IP(t, "-d", "link", "show"))
	b.WriteString(netns.IP(t, "addr", "show"))
	b.WriteString(netns.IP(t, "route", "show", "table", "all"))
	sockets, err := os.ReadFile("/proc/net/packet")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "%d packet sockets\n", strings.Count(string(sockets), "\n")-1)
	return b.String()
}
