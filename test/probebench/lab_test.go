//go:build linux

package probebench

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loam/internal/netns"
)

func TestMain(m *testing.M) { netns.Main(m) }

// lab is a veth pair to a namespace whose kernel answers for a prefix, or for part of it.
type lab struct {
	*netns.Far
	near, far string
	dir       string
	targets   netip.Prefix // probed addresses
	answering netip.Prefix // addresses that answer: the first part of targets
	source    string
	router    string // the router's Ethernet address
}

// The addresses of the wire are outside all targets.
const (
	nearAddress = "192.168.77.1"
	farAddress  = "192.168.77.2"
)

// newLab returns a lab. dir contains the files of prepare.
func newLab(t testing.TB, dir string, targets, answering netip.Prefix) *lab {
	l := &lab{Far: netns.NewFar(t), dir: dir, targets: targets, answering: answering, source: nearAddress}
	l.near, l.far, _ = l.Wire(t)
	for _, end := range []struct {
		ip            func(args ...string) string
		name, address string
	}{
		{func(args ...string) string { return netns.IP(t, args...) }, l.near, nearAddress},
		{func(args ...string) string { return l.IP(t, args...) }, l.far, farAddress},
	} {
		end.ip("address", "flush", "dev", end.name)
		end.ip("address", "add", end.address+"/24", "dev", end.name)
		end.ip("link", "set", "lo", "up")
	}
	l.router = mac(t, l.IP(t, "-br", "link", "show", "dev", l.far))
	netns.IP(t, "neigh", "replace", farAddress, "lladdr", l.router, "dev", l.near, "nud", "permanent")
	l.IP(t, "neigh", "replace", nearAddress, "lladdr", mac(t, netns.IP(t, "-br", "link", "show", "dev", l.near)), "dev", l.far, "nud", "permanent")
	netns.IP(t, "route", "add", targets.String(), "via", farAddress)
	l.IP(t, "route", "add", "local", answering.String(), "dev", "lo")
	if answering != targets {
		l.IP(t, "route", "add", "blackhole", targets.String()) // silent targets: the kernel sends no error for packets to them
	}
	return l
}

func mac(t testing.TB, brief string) string {
	t.Helper()
	words := strings.Fields(brief) // name, state, address, flags
	if len(words) < 3 {
		t.Fatal(brief)
	}
	return words[2]
}

// prepare returns a folder with the loam command and an empty block list.
func prepare(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "loam"), "loam/cmd/loam").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "nobody"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (l *lab) file(name string) string { return filepath.Join(l.dir, name) }

// watch observes the frames that the far end's interface receives until done is called: their number,
// and the times of the first and the last.
type watch struct {
	stop chan struct{} // closed by done
	over chan struct{} // closed when the watcher has ended
	// The watcher writes these fields until it ends, when it closes the channel over.
	frames      uint64
	first, last time.Time
}

// lookEvery is the resolution of the times.
const lookEvery = 5 * time.Millisecond

// counter opens the counters of the far namespace. Several goroutines may call the returned function at
// once.
func (l *lab) counter(t testing.TB) func() uint64 {
	var file *os.File
	var err error
	l.Do(t, func() { file, err = os.Open("/proc/thread-self/net/dev") })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return func() uint64 { return received(file, l.far) }
}

// received returns the number of frames that an interface has received, from /proc/net/dev.
func received(file *os.File, want string) (frames uint64) {
	var buffer [4096]byte
	n, _ := file.ReadAt(buffer[:], 0)
	for line := range strings.Lines(string(buffer[:n])) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		if f := strings.Fields(rest); name == want && len(f) > 1 {
			fmt.Sscan(f[1], &frames)
		}
	}
	return frames
}

func (l *lab) sourceAddr() netip.Addr { return netip.MustParseAddr(l.source) }

func startWatch(read func() uint64) *watch {
	w := &watch{stop: make(chan struct{}), over: make(chan struct{})}
	go w.loop(read)
	return w
}

func (w *watch) loop(read func() uint64) {
	defer close(w.over)
	before := read()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case now := <-tick.C:
			n := read() - before
			if n == w.frames {
				continue
			}
			if w.first.IsZero() {
				w.first = now.Add(-lookEvery)
			}
			w.frames, w.last = n, now
		}
	}
}

// done ends the watch. It returns the number of frames, and the time from the first frame to the last.
func (w *watch) done() (frames uint64, span time.Duration) {
	close(w.stop)
	<-w.over
	return w.frames, w.last.Sub(w.first)
}
