//go:build linux && !race

package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// load is a client, with the function that runs it and parses its report.
type load struct {
	name string
	run  func(t *testing.T, port int, d time.Duration) figure
}

// need skips a test whose client is not installed.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("needs %s: apt-get install %s", program, program)
	}
}

// client runs a client to its end. If the client fails, the returned figure has one error.
func client(t *testing.T, program string, args ...string) (string, figure) {
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	f := figure{detail: string(out)}
	if err != nil {
		f.errors++
		f.detail += err.Error()
	}
	return string(out), f
}

// number returns the first group of a pattern in a report, or 0.
func number(report, pattern string) float64 {
	m := regexp.MustCompile(pattern).FindStringSubmatch(report)
	if m == nil {
		return 0
	}
	v, _ := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	return v
}

// wrk requests a page over persistent connections. Its timeout is long enough for a machine that shares
// the host with many others.
func wrk(path string, conns int) load {
	return load{fmt.Sprintf("wrk, %d connections", conns), func(t *testing.T, port int, d time.Duration) figure {
		need(t, "wrk")
		out, f := client(t, "wrk", "-t2", fmt.Sprintf("-c%d", conns), fmt.Sprintf("-d%.0fs", d.Seconds()), "--timeout", "60s", "http://"+address(port)+path)
		f.readWrk(out)
		return f
	}}
}

func (f *figure) readWrk(report string) {
	f.unit, f.rate = "requests/s", number(report, `Requests/sec:\s+([\d.]+)`)
	for _, kind := range []string{"connect", "read", "write", "timeout"} {
		f.errors += int(number(report, `Socket errors:.*`+kind+` (\d+)`))
	}
	f.errors += int(number(report, `Non-2xx or 3xx responses: (\d+)`))
}

// dnsperf queries a DNS server over UDP or TCP from 16 ports, with up to underWay unanswered queries.
func dnsperf(network string, underWay int) load {
	return load{fmt.Sprintf("dnsperf over %s, %d outstanding queries", strings.ToUpper(network), underWay), func(t *testing.T, port int, d time.Duration) figure {
		need(t, "dnsperf")
		questions := filepath.Join(t.TempDir(), "questions")
		if err := os.WriteFile(questions, []byte("a.example.org A\nb.example.org AAAA\nc.example.org A\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		out, f := client(t, "dnsperf", "-m", network, "-s", "127.0.0.1", "-p", strconv.Itoa(port), "-d", questions,
			"-c", "16", "-q", strconv.Itoa(underWay), "-t", "60", "-l", strconv.Itoa(max(int(d.Seconds()), 1)))
		f.readDNSPerf(out)
		return f
	}}
}

func (f *figure) readDNSPerf(report string) {
	f.unit, f.rate = "answers/s", number(report, `Queries per second:\s+([\d.]+)`)
	completed := int(number(report, `Queries completed:\s+(\d+)`))
	f.errors += int(number(report, `Queries sent:\s+(\d+)`)) - completed
	f.errors += completed - int(number(report, `NOERROR (\d+)`))
}

// natsBench publishes messages in rounds to two subscribers. A round ends when every subscriber has
// received every message.
func natsBench(messages int) load {
	return load{"nats-bench, 2 publishers, 2 subscribers", func(t *testing.T, port int, d time.Duration) figure {
		bench := install(t, "github.com/nats-io/nats.go/examples/nats-bench@v1.55.0")
		total := figure{unit: "deliveries/s"}
		start, rounds := time.Now(), 0
		for ; time.Since(start) < d; rounds++ {
			out, f := client(t, bench, "-s", "nats://"+address(port), "-np", "2", "-ns", "2",
				"-n", fmt.Sprint(messages), "-ms", "128", "loam")
			total.errors += f.errors
			if !strings.Contains(out, "Pub/Sub stats") {
				total.errors++
			}
			if total.errors > 0 {
				total.detail = f.detail
				break
			}
		}
		total.rate = 2 * float64(messages*rounds) / time.Since(start).Seconds()
		return total
	}}
}

// The reports of the clients are parsed correctly, above all the errors.
func TestReports(t *testing.T) {
	var w, d figure
	w.readWrk("  Socket errors: connect 1, read 2, write 0, timeout 4\n  Non-2xx or 3xx responses: 8\nRequests/sec:  21346.95\n")
	if w.rate != 21346.95 || w.errors != 15 {
		t.Errorf("wrk: %+v", w)
	}
	d.readDNSPerf("  Queries sent:         100\n  Queries completed:    98 (98.00%)\n  Response codes:       NOERROR 95 (96%), SERVFAIL 3 (4%)\n  Queries per second:   48.5\n")
	if d.rate != 48.5 || d.errors != 5 {
		t.Errorf("dnsperf: %+v", d)
	}
}
