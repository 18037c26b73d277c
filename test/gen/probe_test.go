//go:build linux

package gen

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"loam/internal/netns"
)

// answering is the number of addresses that the far host answers for.
const answering = 1 << 14

// probeLab returns a lab in which the far kernel answers for 10.200.0.0/18.
func probeLab(t testing.TB) *lab {
	l := newLab(t)
	netns.IP(t, "route", "add", "10.200.0.0/18", "via", l.dst)
	l.IP(t, "link", "set", "lo", "up")
	l.IP(t, "route", "add", "local", "10.200.0.0/18", "dev", "lo")
	return l
}

// checkClean fails if a BPF program or promiscuous mode is left on the near end of the veth.
func checkClean(t testing.TB, l *lab) {
	t.Helper()
	i, err := net.InterfaceByName(l.near)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := link.QueryPrograms(link.QueryOptions{Target: i.Index, Attach: ebpf.AttachTCXIngress}); err != nil || len(r.Programs) > 0 {
		t.Fatalf("programs at tcx: %+v, %v", r, err)
	}
	if text := netns.IP(t, "-d", "link", "show", l.near); strings.Contains(text, "xdp") || !strings.Contains(text, "promiscuity 0") {
		t.Fatalf("left behind:\n%s", text)
	}
}

// addresses returns the addresses in a file of JSON lines, with their numbers of occurrences. An
// incomplete last line does not count.
func addresses(t testing.TB, file string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for line := range bytes.Lines(text) {
		var r struct{ Address string }
		if json.Unmarshal(line, &r) == nil {
			all[r.Address]++
		}
	}
	return all
}

// "loam gen probe" finds all addresses that answer, writes them to a file, and leaves the interface unchanged.
func TestProbe(t *testing.T) {
	l := probeLab(t)
	dir := t.TempDir()
	out, meta := filepath.Join(dir, "out"), filepath.Join(dir, "meta")
	p := l.start(t, false, "probe", "10.200.0.0/18", "--allow-private", "-o", out, "--metadata", meta)
	if err := p.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, p.errs.String())
	}
	if got := addresses(t, out); len(got) != answering {
		t.Errorf("%d addresses", len(got))
	}
	var m struct {
		Asked, Found uint64
		Finished     bool
	}
	if text, err := os.ReadFile(meta); err != nil || json.Unmarshal(text, &m) != nil || m.Asked != answering || m.Found != answering || !m.Finished {
		t.Errorf("%v: %s", err, text)
	}
	if !strings.Contains(p.errs.String(), "16384 asked, 16384 found (100 %)") {
		t.Errorf("it says:\n%s", p.errs.String())
	}
	checkClean(t, l)
}

// A run that is killed at random times, and started again each time, finds all addresses in the end. It
// leaves the interface clean each time. The number of kills is small by default, and can be set by
// LOAM_GEN_KILLS.
func TestProbeIsKilled(t *testing.T) {
	l := probeLab(t)
	kills := 5
	if s := os.Getenv("LOAM_GEN_KILLS"); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	args := []string{"probe", "10.200.0.0/18", "--allow-private", "-o", out, "--resume", filepath.Join(dir, "state"), "--rate", "4000", "-q"}
	for range kills {
		p := l.start(t, false, args...)
		time.Sleep(time.Duration(rand.Int64N(int64(2500 * time.Millisecond)))) // kills at a random time
		p.Process.Kill()
		if err := p.Wait(); err != nil && !strings.Contains(err.Error(), "killed") {
			t.Fatalf("%v\n%s", err, p.errs.String())
		}
		checkClean(t, l)
	}
	args[len(args)-2] = "max"
	p := exec.Command(l.loam, append([]string{"gen"}, args...)...)
	if text, err := p.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	twice := 0
	got := addresses(t, out)
	for _, n := range got {
		if n > 1 {
			twice++
		}
	}
	// The prober does not record the addresses that it found in the last second before a kill, and probes them again.
	// Even if such an address is already in the results, it does not appear twice.
	if len(got) != answering || twice > 0 {
		t.Errorf("%d addresses, %d of them twice", len(got), twice)
	}
	checkClean(t, l)
}
