//go:build linux

package interop

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loam/link"
	"loam/stack"
)

// TestKeepAlive checks with tshark that each end probes an idle connection and that the other end
// answers.
func TestKeepAlive(t *testing.T) {
	l := newLab(t, setup{})
	l.need("tshark")
	file := filepath.Join(t.TempDir(), "keepalive.pcap")
	l.capture(file)
	var ends []conn
	for _, d := range l.directions() {
		client, server := l.connect(d)
		ends = append(ends, client, server)
	}
	// On each connection, one end sends probes: Loam's end of the first, and Linux's end of the second.
	keepAlive(t, ends[0], 1, 1, 9)
	keepAlive(t, ends[2], 1, 1, 9)
	l.eventually("probes and answers of both, as tshark sees them", func() bool {
		seen := l.keptAlive(file)
		for _, h := range []host{l.loam, l.linux} {
			if !seen[h.addr.String()+" probes"] || !seen[h.addr.String()+" answers"] {
				return false
			}
		}
		return true
	})
}

// keptAlive returns what tshark finds in a file that tcpdump is writing: "10.77.1.2 probes", "10.77.1.2
// answers".
func (l *lab) keptAlive(file string) map[string]bool {
	seen := map[string]bool{}
	// The only expected error is an incomplete packet at the end of the file.
	out, _ := l.try("tshark", "-n", "-r", file, "-T", "fields", "-e", "ip.src", "-e", "tcp.analysis.keep_alive", "-e", "tcp.analysis.keep_alive_ack")
	for line := range strings.Lines(out) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(f) == 3 {
			seen[f[0]+" probes"] = seen[f[0]+" probes"] || f[1] != ""
			seen[f[0]+" answers"] = seen[f[0]+" answers"] || f[2] != ""
		}
	}
	return seen
}

// TestKeepAliveFails checks that a connection ends with a timeout if the peer is gone and its probes
// are not answered.
func TestKeepAliveFails(t *testing.T) {
	var line *cut
	l := newLab(t, setup{wrap: func(d link.Device) link.Device {
		line = newCut(d)
		return line
	}})
	var both sync.WaitGroup
	for _, d := range l.directions() {
		client, _ := l.connect(d)
		keepAlive(t, client, 1, 1, 2)
		both.Go(func() {
			if n, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ETIMEDOUT) {
				t.Errorf("%s: %d, %v", d.client.name, n, err)
			}
		})
	}
	line.gone.Store(true)
	both.Wait()
}

// keepAlive enables keep-alive on a connection. The first probe is sent after idle
// seconds without traffic, and further probes every interval seconds. After count
// unanswered probes, the connection ends.
func keepAlive(t *testing.T, c conn, idle, interval, count int) {
	t.Helper()
	var err error
	switch c := c.(type) {
	case *stack.TCPConn:
		err = c.SetOptions(func(o *stack.TCPOptions) {
			o.KeepAlive, o.KeepAliveCount = true, count
			o.KeepAliveIdle, o.KeepAliveInterval = time.Duration(idle)*time.Second, time.Duration(interval)*time.Second
		})
	case *net.TCPConn:
		err = c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Duration(idle) * time.Second, Interval: time.Duration(interval) * time.Second, Count: count})
	}
	if err != nil {
		t.Fatal(err)
	}
}
