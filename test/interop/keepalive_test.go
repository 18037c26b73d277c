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

// TestKeepAlive: each end probes an idle connection, and the other one answers:
// according to tshark.
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
	// An end of each connection, Loam's of the one and Linux's of the other.
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

// keptAlive is what tshark finds in a file that tcpdump is writing: "10.77.1.2
// probes", "10.77.1.2 answers".
func (l *lab) keptAlive(file string) map[string]bool {
	seen := map[string]bool{}
	// An error would be that of a packet of which only a part is in the file.
	out, _ := l.try("tshark", "-n", "-r", file, "-T", "fields", "-e", "ip.src", "-e", "tcp.analysis.keep_alive", "-e", "tcp.analysis.keep_alive_ack")
	for line := range strings.Lines(out) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(f) == 3 {
			seen[f[0]+" probes"] = seen[f[0]+" probes"] || f[1] != ""
			seen[f[0]+" answers"] = seen[f[0]+" answers"] || f[2] != ""
		}
	}
	return seen
}

// TestKeepAliveFails: when the peer has gone, the probes are not answered, and the
// connection ends with a timeout.
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

// keepAlive has an idle connection probed after idle seconds, every interval
// seconds, and ended after count probes without an answer.
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
