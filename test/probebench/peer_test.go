//go:build linux

package probebench

import (
	"bufio"
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/gen/bench"
)

// contestant is a prober that probes all targets once. It exits by itself, or is interrupted after its
// last probe.
type contestant struct {
	name string
	args func(l *lab, results string) []string
	// address extracts the address from a line of the results.
	address func(line string) string
	endless bool // the prober does not exit by itself
}

// All wait a second for late replies; that second does not count. masscan is configured to send as fast as it
// can, and zmap at ten gigabits per second. Both skip private networks by default.
var contestants = []contestant{
	{name: "loam", address: between(`{"address":"`, `"`), args: func(l *lab, results string) []string {
		args := []string{l.file("loam"), "gen", "probe", l.targets.String(), "--allow-private", "--wait", "1s", "-o", results, "-q"}
		if l.answering != l.targets {
			args = append(args, "--retries", "0") // the other probers probe silent addresses only once
		}
		return args
	}},
	{name: "zmap", address: strings.TrimSpace, args: func(l *lab, results string) []string {
		return []string{"zmap", "-q", "-i", l.near, "-S", l.source, "-G", l.router, "-M", "icmp_echoscan", "-b", l.file("nobody"),
			"-B", "10G", "-c", "1", "-o", results, l.targets.String()}
	}},
	{name: "masscan", address: between("open icmp 0 ", " "), endless: true, args: func(l *lab, results string) []string {
		return []string{"masscan", "--ping", "-e", l.near, "--source-ip", l.source, "--router-mac", strings.ReplaceAll(l.router, ":", "-"),
			"--rate", "10000000", "--wait", "1", "-oL", results, l.targets.String()}
	}},
}

// between returns a function that extracts the text between two strings.
func between(before, after string) func(string) string {
	return func(line string) string {
		rest, ok := strings.CutPrefix(line, before)
		if !ok {
			return ""
		}
		what, _, _ := strings.Cut(rest, after)
		return what
	}
}

// run is the result of one run.
type run struct {
	Sent    uint64  `json:"sent"`            // probes, as counted by the far end
	Found   uint64  `json:"found"`           // number of addresses
	Sending float64 `json:"sending_seconds"` // seconds from the first probe to the last
	CPU     float64 `json:"cpu_seconds"`     // seconds of CPU time of the program and of the kernel's softirq threads, the far kernel's work included
}

// Rate returns the addresses found per second of sending.
func (r run) Rate() float64 { return float64(r.Found) / r.Sending }

// SentRate returns the probes sent per second.
func (r run) SentRate() float64 { return float64(r.Sent) / r.Sending }

// PerCPU returns the addresses found per second of CPU time.
func (r run) PerCPU() float64 { return float64(r.Found) / r.CPU }

// run runs a contestant.
func (l *lab) run(t testing.TB, c contestant, read func() uint64, limit time.Duration) run {
	t.Helper()
	results := l.file(c.name + ".out")
	os.Remove(results)
	args := c.args(l, results)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	w, softirqs := startWatch(read), bench.SoftirqTime()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1) // the goroutine sends once
	go func() { ended <- cmd.Wait() }()
	if err := await(c, cmd.Process.Pid, ended, read, limit); err != nil {
		t.Fatalf("%s: %v\n%s", c.name, err, tail(out.String()))
	}
	var r run
	var span time.Duration
	r.Sent, span = w.done()
	r.Sending = span.Seconds()
	r.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() + bench.SoftirqTime() - softirqs).Seconds()
	r.Found = l.count(t, results, c.address)
	return r
}

// await waits until the program exits. An endless program is interrupted when it has sent nothing for a
// while.
func await(c contestant, group int, ended <-chan error, read func() uint64, limit time.Duration) error {
	const quiet = 2 * time.Second
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	start := time.Now()
	start0, before, since := read(), uint64(0), time.Now()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
		}
		if n := read() - start0; n != before {
			before, since = n, time.Now()
		}
		over := c.endless && before > 0 && time.Since(since) > quiet
		if time.Since(start) < limit && !over {
			continue
		}
		end(group, ended)
		if !over {
			return fmt.Errorf("not done after %v", limit)
		}
		return nil
	}
}

// end interrupts a process group, and kills processes that do not exit.
func end(group int, ended <-chan error) {
	syscall.Kill(-group, syscall.SIGINT)
	select {
	case <-ended:
	case <-time.After(3 * time.Second):
		syscall.Kill(-group, syscall.SIGKILL)
		<-ended
	}
}

func tail(s string) string { return s[max(0, len(s)-1000):] }

// count returns the number of targets in a file of results.
func (l *lab) count(t testing.TB, file string, address func(string) string) (n uint64) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	first := l.targets.Addr().As4()
	base := uint32(first[0])<<24 | uint32(first[1])<<16 | uint32(first[2])<<8 | uint32(first[3])
	seen := make([]bool, 1<<(32-l.targets.Bits()))
	for lines := bufio.NewScanner(in); lines.Scan(); {
		a, err := netip.ParseAddr(address(lines.Text()))
		if err != nil || !l.targets.Contains(a) {
			continue
		}
		b := a.As4()
		i := (uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])) - base
		if !seen[i] {
			seen[i] = true
			n++
		}
	}
	return n
}
