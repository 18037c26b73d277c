//go:build linux

package interop

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"loam/stack"
	"loam/stack/tcp"
)

// negotiations are the settings of both ends, and what the connection then uses according to both.
var negotiations = []struct {
	name    string
	sysctls map[string]string // settings of Linux
	config  tcp.Config        // settings of Loam
	linux   string            // output of ss(8): words that must be present, or absent if they have a minus sign
	loam    features
}{
	{"everything", nil, tcp.Config{}, "ts sack wscale", features{timestamps: true, sack: true, scale: true}},
	{"Linux without timestamps", map[string]string{"tcp_timestamps": "0"}, tcp.Config{}, "-ts sack wscale", features{sack: true, scale: true}},
	{"Linux without SACK", map[string]string{"tcp_sack": "0"}, tcp.Config{}, "ts -sack wscale", features{timestamps: true, scale: true}},
	{"Linux without scaling", map[string]string{"tcp_window_scaling": "0"}, tcp.Config{}, "ts sack -wscale", features{timestamps: true, sack: true}},
	{"Linux with none", map[string]string{"tcp_timestamps": "0", "tcp_sack": "0", "tcp_window_scaling": "0"}, tcp.Config{}, "-ts -sack -wscale", features{}},
	{"Loam without timestamps", nil, tcp.Config{NoTimestamps: true}, "-ts sack wscale", features{sack: true, scale: true}},
	{"Loam without SACK", nil, tcp.Config{NoSACK: true}, "ts -sack wscale", features{timestamps: true, scale: true}},
	{"Loam without scaling", nil, tcp.Config{NoWindowScale: true}, "ts sack -wscale", features{timestamps: true, sack: true}},
	{"Loam with none", nil, tcp.Config{NoTimestamps: true, NoSACK: true, NoWindowScale: true}, "-ts -sack -wscale", features{}},
	{"both with ECN", map[string]string{"tcp_ecn": "1"}, tcp.Config{ECN: tcp.ECNAsk}, "ts sack ecn wscale", features{true, true, true, true}},
	{"Loam without ECN", map[string]string{"tcp_ecn": "1"}, tcp.Config{}, "ts sack -ecn wscale", features{timestamps: true, sack: true, scale: true}},
	{"Linux without ECN", map[string]string{"tcp_ecn": "0"}, tcp.Config{ECN: tcp.ECNAsk}, "ts sack -ecn wscale", features{timestamps: true, sack: true, scale: true}},
}

// features are the options that a connection agreed on.
type features struct{ timestamps, sack, scale, ecn bool }

// TestNegotiation checks that both ends agree on the options, and that data flows in both directions
// with them.
func TestNegotiation(t *testing.T) {
	for _, n := range negotiations {
		t.Run(n.name, func(t *testing.T) {
			l := newLab(t, setup{tcp: n.config})
			for name, value := range n.sysctls {
				l.sysctl(name, value)
			}
			for _, d := range l.directions() {
				client, server := l.connect(d)
				info := loamEnd(client, server).Info()
				if got := (features{info.Timestamps, info.SACK, info.WindowScaled, info.ECN}); got != n.loam {
					t.Errorf("%s: Loam has %+v, want %+v", d, got, n.loam)
				}
				out := l.run("ss", "-tienH", "state", "established", "dst", l.loam.addr.String())
				for word := range strings.FieldsSeq(n.linux) {
					word, without := strings.CutPrefix(word, "-")
					if regexp.MustCompile(`\s`+word+`[\s:]`).MatchString(out) == without {
						t.Errorf("%s: Linux has\n%s\nwant %s", d, out, n.linux)
					}
				}
				l.exchange(d.String(), client, server, 1<<20)
				l.must(client.Close())
				l.must(server.Close())
			}
		})
	}
}

// TestMSS checks that both ends send segments as long as the link allows, whether or not the other end
// announces its MSS.
func TestMSS(t *testing.T) {
	for _, mtu := range []int{576, 1500, 9000, 16384} {
		t.Run(fmt.Sprint(mtu), func(t *testing.T) {
			l := newLab(t, setup{mtu: mtu})
			for _, d := range l.directions() {
				client, server := l.connect(d)
				info := loamEnd(client, server).Info()
				const headers, timestamps = 40, 12
				if info.AdvMSS != mtu-headers || info.SndMSS != mtu-headers-timestamps {
					t.Errorf("%s: Loam advertises %d and sends %d", d, info.AdvMSS, info.SndMSS)
				}
				out := l.run("ss", "-tienH", "state", "established", "dst", l.loam.addr.String())
				if want := fmt.Sprintf(" mss:%d ", mtu-headers-timestamps); !strings.Contains(out, want) {
					t.Errorf("%s: Linux has\n%s\nwant %s", d, out, want)
				}
				l.exchange(d.String(), client, server, 1<<20)
				l.must(client.Close())
				l.must(server.Close())
			}
		})
	}
}

// loamEnd returns Loam's end of a connection.
func loamEnd(a, b conn) *stack.TCPConn {
	if c, ok := a.(*stack.TCPConn); ok {
		return c
	}
	return b.(*stack.TCPConn)
}
