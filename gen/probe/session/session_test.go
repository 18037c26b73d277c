//go:build linux

package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loam/gen/probe"
	"loam/gen/probe/target"
	"loam/internal/netns"
)

func TestMain(m *testing.M) { netns.Main(m) }

// count is the number of addresses that the far kernel answers for.
const count = 2048

// lab is a veth pair to a namespace whose kernel answers for 10.200.0.0/21, and options to probe these addresses.
type lab struct {
	*netns.Far
	near, far string
	gateway   string
	options   Options
	out       bytes.Buffer
}

func newLab(t testing.TB) *lab {
	l := &lab{Far: netns.NewFar(t)}
	var n int
	l.near, l.far, n = l.Wire(t)
	l.gateway = fmt.Sprintf("10.%d.0.2", n)
	netns.IP(t, "route", "add", "10.200.0.0/21", "via", l.gateway)
	t.Cleanup(func() { netns.IP(t, "route", "del", "10.200.0.0/21") })
	l.IP(t, "link", "set", "lo", "up")
	l.IP(t, "route", "add", "local", "10.200.0.0/21", "dev", "lo")
	l.Do(t, func() { // by default, a host limits the rate of its ICMP errors, which would hide answers
		for _, limit := range []string{"icmp_ratelimit", "icmp_ratemask"} {
			if err := os.WriteFile("/proc/sys/net/ipv4/"+limit, []byte("0"), 0); err != nil {
				t.Fatal(err)
			}
		}
	})
	l.options = Options{
		Targets: ranges(t, "10.200.0.0/21"), AllowPrivate: true, KeepPrivileges: true,
		Fields: probe.DefaultFields(probe.Echo), Output: &l.out,
	}
	l.options.Probe.Retries, l.options.Probe.RetryAfter, l.options.Probe.Wait = 3, 100*time.Millisecond, time.Second
	return l
}

func ranges(t testing.TB, list ...string) (rs []target.Range) {
	t.Helper()
	for _, s := range list {
		r, err := target.ParseRange(s)
		if err != nil {
			t.Fatal(err)
		}
		rs = append(rs, r)
	}
	return rs
}

// addresses returns the addresses in JSON lines. It fails if an address occurs twice.
func addresses(t testing.TB, text []byte) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for line := range bytes.Lines(text) {
		var r struct{ Address string }
		if err := json.Unmarshal(line, &r); err != nil || all[r.Address] {
			t.Fatalf("%v: %s", err, line)
		}
		all[r.Address] = true
	}
	return all
}

// All addresses are found with every method and every kind of probe, with automatically determined settings. The
// interface is unchanged afterwards.
func TestFindsAllAddresses(t *testing.T) {
	for _, method := range []string{"tc", "xdp", "ring", "packet"} {
		for _, c := range []struct {
			kind probe.Kind
			says probe.Answer
		}{{probe.Echo, probe.EchoReply}, {probe.SYN, probe.Reset}, {probe.UDP, probe.PortUnreachable}} {
			t.Run(method+" "+c.kind.String(), func(t *testing.T) {
				l := newLab(t)
				o := l.options
				o.Method, o.Probe.Kind, o.Probe.All = method, c.kind, true
				if c.kind != probe.Echo {
					o.Probe.Ports = []uint16{9}
				}
				sum, err := Run(t.Context(), o)
				if err != nil || !sum.Finished || sum.Answers[c.says] != count || sum.Forged != 0 || sum.Malformed != 0 {
					t.Fatalf("%+v, %v", sum, err)
				}
				if found := addresses(t, l.out.Bytes()); len(found) != count {
					t.Errorf("%d results", len(found))
				}
				if text := netns.IP(t, "-d", "link", "show", l.near); strings.Contains(text, "xdp") || !strings.Contains(text, "promiscuity 0") {
					t.Errorf("left behind:\n%s", text)
				}
			})
		}
	}
}

// A run takes the answers to its probes away from the kernel. The kernel still receives the answers to its own requests
// during the run.
func TestPingContinues(t *testing.T) {
	for _, method := range []string{"tc", "xdp"} {
		t.Run(method, func(t *testing.T) {
			l := newLab(t)
			o := l.options
			o.Method, o.Probe.Rate = method, 1000
			pings := 0
			o.Probe.Progress = func(probe.Status) {
				out, err := exec.Command("ping", "-c", "1", "-W", "5", l.gateway).CombinedOutput()
				if pings++; err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			}
			sum, err := Run(t.Context(), o)
			if err != nil || sum.Found() != count || pings == 0 {
				t.Errorf("%d found, %d pings, %v", sum.Found(), pings, err)
			}
		})
	}
}

// An open port is reported as open, and no connection stays half open. With tc and xdp the prober sends the resets,
// with the other methods the kernel does.
func TestOpenPortsAreReset(t *testing.T) {
	for _, method := range []string{"tc", "xdp", "ring"} {
		t.Run(method, func(t *testing.T) {
			l := newLab(t)
			var ln net.Listener
			var err error
			l.Do(t, func() { ln, err = net.Listen("tcp", "0.0.0.0:80") })
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			o := l.options
			o.Targets = ranges(t, "10.200.0.0/25") // 128 addresses, as many as the backlog of half-open connections has room for
			o.Method, o.Probe.Kind, o.Probe.Ports = method, probe.SYN, []uint16{80}
			sum, err := Run(t.Context(), o)
			if err != nil || sum.Answers[probe.SYNACK] != 128 {
				t.Fatalf("%+v, %v", sum, err)
			}
			if ours := method != "ring"; ours != (sum.Resets >= 128) {
				t.Errorf("%d resets of ours", sum.Resets)
			}
			for deadline := time.Now().Add(5 * time.Second); halfOpen(t, l) > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%d connections are half open", halfOpen(t, l))
				}
			}
		})
	}
}

// halfOpen returns the number of the far host's connections in SYN-RECEIVED.
func halfOpen(t *testing.T, l *lab) (n int) {
	t.Helper()
	l.Do(t, func() {
		text, err := os.ReadFile("/proc/thread-self/net/tcp")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 3 && f[3] == "03" {
				n++
			}
		}
	})
	return n
}

// An interrupted run is resumed where it stopped. In the end every address is in the results exactly once.
func TestResumes(t *testing.T) {
	l := newLab(t)
	for _, format := range []probe.Format{probe.JSONLines, probe.CSV} {
		dir := t.TempDir()
		o := l.options
		o.Format, o.OutputFile, o.StateFile = format, filepath.Join(dir, "results"), filepath.Join(dir, "state")
		o.Probe.Rate = 4000 // slow enough to interrupt the first run
		runs, found := 0, uint64(0)
		for finished := false; !finished; runs++ {
			if runs == 20 {
				t.Fatal("no end of it")
			}
			ctx, cancel := context.WithCancel(t.Context())
			if runs < 2 {
				time.AfterFunc(200*time.Millisecond, cancel)
			}
			sum, err := Run(ctx, o)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			found += sum.Found()
			finished = sum.Finished
		}
		text, err := os.ReadFile(o.OutputFile)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Count(text, []byte("\n"))
		if format == probe.CSV {
			lines-- // there is only one header line
		} else if n := len(addresses(t, text)); n != count {
			t.Errorf("%d addresses", n)
		}
		if lines != count || found != count || runs < 2 {
			t.Errorf("%d results in %d runs, of which they count %d", lines, runs, found)
		}
		if state, err := os.ReadFile(o.StateFile); err != nil || len(state) != 0 {
			t.Errorf("the state of a finished run is left: %q, %v", state, err)
		}
	}
}

// Runs with the same seed and different shards divide the targets among them.
func TestShards(t *testing.T) {
	l := newLab(t)
	for shard := range uint64(3) {
		o := l.options
		o.Probe.Seed, o.Probe.Shard, o.Probe.Shards = 7, shard, 3
		if _, err := Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if found := addresses(t, l.out.Bytes()); len(found) != count {
		t.Errorf("%d of %d", len(found), count)
	}
}

// Invalid requests are rejected with a one-line error that says what to do.
func TestRefusals(t *testing.T) {
	l := newLab(t)
	netns.IP(t, "link", "set", "lo", "up")
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "text"), []byte("something else\n"), 0o600)
	for _, c := range []struct {
		change func(o *Options)
		want   string
	}{
		{func(o *Options) { o.AllowPrivate = false }, "say --allow-private"},
		{func(o *Options) { o.Targets = ranges(t, "127.0.0.1") }, "say --allow-reserved"},
		{func(o *Options) { o.Exclude = o.Targets }, "there is nobody to ask"},
		{func(o *Options) { o.Targets = ranges(t, "10.0.0.1", "fd00::1") }, "one family"},
		{func(o *Options) { o.Targets = ranges(t, "11.0.0.0/24"); o.Public = true }, "say by which interface"},
		{func(o *Options) { o.Interface, o.Targets = l.near, ranges(t, "11.0.0.0/24") }, "--public"},
		{func(o *Options) { o.Interface = "none0" }, `no interface "none0"`},
		{func(o *Options) { o.Probe.Source = netip.MustParseAddr("fd00::1") }, "not of the family of the targets"},
		{func(o *Options) { o.Targets = ranges(t, "127.0.0.1"); o.AllowReserved = true }, "an address of this host"},
		{func(o *Options) { o.Targets = ranges(t, strings.TrimSuffix(l.gateway, "2")+"0/24", "10.200.0.1") }, "ask them in two runs"},
		{func(o *Options) {
			o.Targets, o.Method, o.Probe.Kind = ranges(t, l.gateway), "tc", probe.Neighbour
		}, "away from the kernel"},
		{func(o *Options) { o.Targets, o.Probe.Kind = ranges(t, "10.200.0.1"), probe.Neighbour }, "lies behind"},
		{func(o *Options) {
			o.Probe.Source = netip.MustParseAddr("10.0.0.1")
			for range MaxSources {
				o.Probe.More = append(o.Probe.More, o.Probe.Source)
			}
		}, "give fewer with --src"},
		{func(o *Options) { o.Targets = ranges(t, "10.200.0.1", "10.201.0.1"); o.Interface = l.near }, "in two runs"},
		{func(o *Options) { o.Method = "udp" }, "cannot probe"},
		{func(o *Options) { o.Method = "smoke" }, "choose another with --method"},
		{func(o *Options) { o.StateFile = filepath.Join(dir, "state") }, "-o FILE"},
		{func(o *Options) { o.StateFile, o.OutputFile = filepath.Join(dir, "text"), filepath.Join(dir, "out") }, "is not the state"},
		{func(o *Options) { o.OutputFile = filepath.Join(dir, "none", "out") }, "can be written"},
	} {
		o := l.options
		c.change(&o)
		_, err := Run(t.Context(), o)
		var refusal *Refusal
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v; want %q", err, c.want)
		}
	}
}

// Reserved addresses inside a wider range are excluded, and the user is notified.
func TestReservedAddressesAreExcluded(t *testing.T) {
	var notes []string
	o := Options{Targets: ranges(t, "9.255.255.0-10.0.0.9"), Note: func(s string) { notes = append(notes, s) }}
	s, err := o.addresses()
	if err != nil || s.Len() != 256 || len(notes) != 1 || !strings.Contains(notes[0], "10 addresses") {
		t.Errorf("%v, %v, %q", s, err, notes)
	}
	if _, ok := s.Index(netip.MustParseAddr("10.0.0.1")); ok {
		t.Error("a private address is asked")
	}
}
