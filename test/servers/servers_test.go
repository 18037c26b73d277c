//go:build linux && !race

package servers

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var (
	seconds = flag.Int("seconds", 4, "how long each load lasts")
	all     = flag.Bool("all", false, "run the servers that take minutes to build, too")
	update  = flag.Bool("update", false, "measure on Linux as well, and write docs/servers.md")
)

// server is a program from the module proxy.
type server struct {
	name string
	what string
	pkg  string                                 // path of the package with its version; for a server of this tree, its folder
	slow bool                                   // takes minutes to build: only with -all
	udp  bool                                   // the server uses a UDP port, too
	args func(dir string, port int) []string    // returns the arguments; dir is an empty folder for the server
	up   func(ctx context.Context, p int) error // returns nil when the server answers
	load []load

	machineLoad []load // loads in a virtual machine, where every instruction is emulated
}

var servers = []server{
	{
		name: "go-httpbin", what: "HTTP", pkg: "github.com/mccutchen/go-httpbin/v2/cmd/go-httpbin@v2.26.0",
		args: func(_ string, port int) []string { return []string{"-port", fmt.Sprint(port), "-log-level", "OFF"} },
		up:   servesHTTP, load: []load{wrk("/get", 64)}, machineLoad: []load{wrk("/get", 16)},
	},
	{
		name: "pebble-challtestsrv", what: "DNS", pkg: "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv@v2.10.1", udp: true,
		args: func(_ string, port int) []string {
			return []string{"-dnsserver", fmt.Sprintf(":%d", port), "-management", "", "-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""}
		},
		up: servesDNS, load: []load{dnsperf("udp", 100)}, machineLoad: []load{dnsperf("udp", 20)},
	},
	{
		name: "nats-server", what: "messages", pkg: "github.com/nats-io/nats-server/v2@v2.15.2",
		args: func(_ string, port int) []string { return []string{"-p", fmt.Sprint(port)} },
		up:   servesNATS, load: []load{natsBench(500_000)}, machineLoad: []load{natsBench(20_000)},
	},
	{
		name: "coredns", what: "DNS", pkg: "github.com/coredns/coredns@v1.15.0", slow: true, udp: true,
		args: func(dir string, port int) []string {
			return []string{"-conf", writeCorefile(dir), "-dns.port", fmt.Sprint(port)}
		},
		up: servesDNS, load: []load{dnsperf("udp", 100), dnsperf("tcp", 100)}, machineLoad: []load{dnsperf("udp", 20), dnsperf("tcp", 20)},
	},
	{
		name: "caddy", what: "HTTP", pkg: "github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9", slow: true,
		args: func(dir string, port int) []string {
			return []string{"file-server", "--listen", fmt.Sprintf(":%d", port), "--root", writePage(dir)}
		},
		up: servesHTTP, load: []load{wrk("/index.html", 64)}, machineLoad: []load{wrk("/index.html", 16)},
	},
}

// ownServer is the name of examples/web, the only server that is part of this tree.
const ownServer = "examples/web"

// everyServer returns ownServer and all other servers.
func everyServer(t *testing.T) []server {
	pkg, err := filepath.Abs("../../examples/web")
	if err != nil {
		t.Fatal(err)
	}
	own := server{
		name: ownServer, what: "HTTP", pkg: pkg,
		args: func(_ string, port int) []string { return []string{"-addr", fmt.Sprintf(":%d", port)} },
		up:   servesHTTP, load: []load{wrk("/", 64)}, machineLoad: []load{wrk("/", 16)},
	}
	return append([]server{own}, servers...)
}

// writePage creates a page of 4 KiB in dir, and returns dir.
func writePage(dir string) string {
	if err := os.WriteFile(filepath.Join(dir, "index.html"), make([]byte, 4<<10), 0o644); err != nil {
		panic(err)
	}
	return dir
}

// writeCorefile creates a configuration with which CoreDNS answers every query about example.org.
func writeCorefile(dir string) string {
	const text = `example.org {
	template IN A {
		answer "{{ .Name }} 60 IN A 192.0.2.7"
	}
	template IN AAAA {
		answer "{{ .Name }} 60 IN AAAA 2001:db8::7"
	}
}
`
	name := filepath.Join(dir, "Corefile")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		panic(err)
	}
	return name
}

// figure is the result of one load.
type figure struct {
	rate   float64 // requests (or queries, messages) per second
	unit   string
	errors int
	detail string // text about the errors
	grown  int    // growth of the server's memory in KiB: at the end, compared with after a third of the load or a minute
}

// row is one line of docs/servers.md.
type row struct {
	server, load string
	loam, linux  figure
}

// Every server serves under load without an error, and exits on Ctrl-C.
func TestServers(t *testing.T) {
	loam := buildLoam(t)
	var rows []row
	for _, s := range everyServer(t) {
		if s.slow && !*all {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			rows = append(rows, s.test(t, loam)...)
		})
	}
	if *update && !t.Failed() {
		if err := writeReport(rows, *seconds); err != nil {
			t.Error(err)
		}
	}
}

// linuxTime is the longest duration of a load on Linux, which is only for comparison.
const linuxTime = 20 * time.Second

// test runs s on Loam, and with -update on Linux too.
func (s *server) test(t *testing.T, loam string) (rows []row) {
	d := time.Duration(*seconds) * time.Second
	p := s.startOnLoam(t, loam, "--platform", "process")
	for _, l := range s.load {
		r := row{server: s.name, load: s.what + ", " + l.name, loam: p.measure(t, l, d)}
		t.Logf("%s: %.0f %s on Loam, %d errors; memory grew by %d KiB", r.load, r.loam.rate, r.loam.unit, r.loam.errors, r.loam.grown)
		if r.loam.errors > 0 || r.loam.rate <= 0 {
			t.Errorf("%s: %d errors in %v:\n%s", r.load, r.loam.errors, d, r.loam.detail)
		}
		rows = append(rows, r)
	}
	p.interrupt(t)
	if !*update {
		return rows
	}
	p = s.startOnLinux(t)
	for i, l := range s.load {
		rows[i].linux = p.measure(t, l, min(d, linuxTime))
	}
	p.interrupt(t)
	return rows
}

// measure runs a load against a server, and measures the server's memory.
func (p *process) measure(t *testing.T, l load, d time.Duration) figure {
	early := make(chan int, 1) // the timer sends to this goroutine
	timer := time.AfterFunc(min(d/3, time.Minute), func() { early <- p.resident() })
	f := l.run(t, p.port, d)
	if !timer.Stop() {
		f.grown = p.resident() - <-early
	}
	return f
}
