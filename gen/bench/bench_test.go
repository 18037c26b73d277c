//go:build linux

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"loam/gen"
	"loam/gen/method"
	"loam/internal/netns"
	"loam/wire"
)

func TestMain(m *testing.M) { netns.Main(m) }

// The benchmark measures every method, on one queue and on two, by the counter of the veth peer in another namespace.
// The number of frames that a method reports as sent equals the number that arrived.
func TestEveryMethodIsCountedAtThePeer(t *testing.T) {
	f := netns.NewFar(t)
	near, _, n := f.Wire(t)
	peer, err := Peer(near)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Stream(fmt.Sprintf("10.%d.0.2", n), 64, false)
	if err != nil {
		t.Fatal(err)
	}
	next := wire.MAC{2, 0, 0, 0, 0, 0x99}
	netns.IP(t, "neigh", "replace", fmt.Sprintf("10.%d.0.2", n), "lladdr", next.String(), "dev", near, "nud", "permanent")
	all, err := Methods(gen.Config{Interface: near, Streams: []gen.Stream{s}, NextHop: next}, nil, []int{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	// every method has two results, for one queue and two, except: tap runs with one queue only, and mmsg runs also
	// in its plain form, with one queue and with two
	if want := 2*len(method.All()) + 1; len(all) != want {
		t.Fatalf("%d contestants, want %d", len(all), want)
	}
	rows, err := Run(t.Context(), all, Options{Slice: 20 * time.Millisecond, Rounds: 1, Peer: peer})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		switch {
		case r.Error != "" || len(r.PPS) != 1: // on a busy machine, a contestant may send nothing in such a short time
			t.Errorf("%+v", r)
		case r.Name == "udpgso" || r.Name == "mmsg": // trains arrive unsegmented on this veth
		case r.Lost > 0:
			t.Errorf("%s says that it sent %.2f %% more than arrived", r.Name, 100*r.Lost)
		}
	}
	var table, plot bytes.Buffer
	if err := Table(&table, rows, 64, "udp"); err != nil || strings.Count(table.String(), "pps") < 3*len(rows) {
		t.Errorf("%v\n%s", err, table.String())
	}
	if err := Plot(&plot, "test", rows); err != nil || !strings.Contains(plot.String(), "ring, 2 queues") {
		t.Errorf("%v, %.100s", err, plot.String())
	}
}

// fake is a contestant, which is a sending program under measurement. The test chooses the values that the counter at
// its peer returns.
type fake struct {
	frames uint64
	sent   Sent
	err    error
}

func (f *fake) count() (Count, error) {
	f.frames += 1000
	return Count{f.frames, 64 * f.frames}, nil
}

func (f *fake) start(context.Context) (*Running, error) {
	if f.err != nil {
		return nil, f.err
	}
	return &Running{Stop: func() (Sent, error) { return f.sent, nil }}, nil
}

// If fewer frames arrive than the contestant reports, the difference is reported as loss. If the peer counts a train of
// datagrams as one frame, that is reported too.
func TestClaimsAreCompared(t *testing.T) {
	for _, test := range []struct {
		sent Sent
		lost bool
		note string
	}{
		{Sent{Frames: 1000}, false, ""},
		{Sent{Frames: 1 << 40}, true, ""},
		{Sent{Frames: 1 << 40, Train: true}, true, "trains"},
	} {
		f := &fake{sent: test.sent}
		rows, err := Run(t.Context(), []Contestant{{Name: "fake", Queues: 1, Start: f.start}},
			Options{Slice: time.Millisecond, Rounds: 3, Peer: f.count})
		if r := rows[0]; err != nil || len(r.PPS) != 3 || (r.Lost > 0) != test.lost || !strings.Contains(r.Note, test.note) || (r.Note == "") != (test.note == "") {
			t.Errorf("%+v: %+v, %v", test.sent, r, err)
		}
	}
}

// Frames longer than the MTU are rejected.
func TestFramesBeyondTheMTU(t *testing.T) {
	near, _ := netns.Veth(t, 1500, 1)
	for size, fits := range map[int]bool{1518: true, 1519: false} {
		s, err := Stream("10.0.0.2", size, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Methods(gen.Config{Interface: near, Streams: []gen.Stream{s}}, nil, []int{1}); (err == nil) != fits {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// A contestant that cannot start has no results. The benchmark still measures the other contestants.
func TestErrorsStayInTheirRow(t *testing.T) {
	broken, well := &fake{err: errors.New("broken")}, &fake{}
	rows, err := Run(t.Context(), []Contestant{{Name: "a", Queues: 1, Start: broken.start}, {Name: "b", Queues: 1, Start: well.start}},
		Options{Slice: time.Millisecond, Rounds: 2, Peer: well.count})
	if err != nil || rows[0].Error != "broken" || len(rows[1].PPS) != 2 {
		t.Errorf("%+v, %v", rows, err)
	}
	var b bytes.Buffer
	Table(&b, rows, 64, "udp")
	if !strings.Contains(b.String(), "a, 1 queue(s): broken") {
		t.Error(b.String())
	}
}

// The processor time of another process group includes all its threads.
func TestProcessorTimeOfAGroup(t *testing.T) {
	c := exec.Command("sh", "-c", "while :; do :; done")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	for {
		used, err := processorTime(c.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if used > 20*time.Millisecond {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// The processor time of this process includes all its threads, regardless of their names. A method's threads of
// Go's runtime count, like all threads of a peer's process.
func TestProcessorTimeOfThisProcess(t *testing.T) {
	before, err := processorTime(0)
	if err != nil {
		t.Fatal(err)
	}
	const spun = 50 * time.Millisecond
	var spinners sync.WaitGroup
	for range 2 {
		spinners.Go(func() {
			runtime.LockOSThread() // the thread ends with its goroutine, so its time is read before that
			for begin := threadTime(t); threadTime(t)-begin < spun; {
			}
		})
	}
	defer spinners.Wait()
	for {
		used, err := processorTime(0)
		if err != nil {
			t.Fatal(err)
		}
		if used-before >= spun {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// threadTime returns the processor time of the calling thread.
func threadTime(t *testing.T) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		t.Error(err)
	}
	return time.Duration(ts.Nano())
}

// The kernel has one softirq thread per processor, and the processor time of these threads does not decrease. In a
// PID namespace none are visible.
func TestSoftirqTime(t *testing.T) {
	if name, _ := os.ReadFile("/proc/2/comm"); string(name) != "kthreadd\n" {
		if n := SoftirqTime(); n != 0 {
			t.Errorf("threads that are not there ran for %v", n)
		}
		return
	}
	if n := len(softirqThreads()); n < runtime.NumCPU() {
		t.Errorf("%d threads for %d processors", n, runtime.NumCPU())
	}
	first := SoftirqTime()
	if second := SoftirqTime(); first <= 0 || second < first {
		t.Errorf("they ran for %v, and then for %v", first, second)
	}
}

// For an interface that is not a veth, the function Peer returns ErrNoPeer, and the function Own returns the
// interface's own counter.
func TestPeerOfOthers(t *testing.T) {
	netns.Need(t)
	if _, err := Peer("lo"); !errors.Is(err, ErrNoPeer) {
		t.Error(err)
	}
	if _, err := Peer("nosuch0"); err == nil || !strings.Contains(err.Error(), "there is no interface") {
		t.Error(err)
	}
	if _, err := Own("lo")(); err != nil {
		t.Error(err)
	}
}
