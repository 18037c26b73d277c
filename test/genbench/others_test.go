//go:build linux

package genbench

import (
	"os/exec"
	"strings"

	"loam/gen/bench"
)

// Generators in Go that are not Debian packages. They take part if they are in PATH:
//
//	git clone https://github.com/atoonk/go-pktgen && cd go-pktgen && go build
//	git clone https://github.com/atoonk/wireblast && cd wireblast && go build ./cmd/wireblast
//
// Both are unchanged. wireblast needs 26 MiB of locked memory per queue: ulimit -l unlimited. If that
// is not allowed, change its defaultNumFrames to 1024, and remove the 16 MiB of reserve from its check
// of the limit. Each method of go-pktgen is compared with the method of Loam that makes the same system
// calls, and wireblast with xdp.

const (
	goPktgen  = "go-pktgen"
	wireblast = "wireblast"
)

// likeOurs maps methods of Loam to the methods of go-pktgen that make the same system calls.
var likeOurs = []struct{ ours, theirs string }{
	{"net", "net_conn"}, {"udp", "udp_syscall"}, {"mmsg, plain", "pkt_conn"}, {"udpgso", "gso"}, {"raw", "raw_socket"},
	{"pcap", "af_pcap"}, {"packet", "af_packet"}, {"xdp", "af_xdp"},
}

// others returns the generators that are installed, and the aims for Loam's methods compared with them.
func others(near, dst string) (all []bench.Contestant, wanted []aim) {
	source := strings.TrimSuffix(dst, "2") + "1"
	const next, least = "02:00:00:00:00:99", 1.0
	if _, err := exec.LookPath(goPktgen); err == nil {
		for _, m := range likeOurs {
			name := goPktgen + ", " + m.theirs
			all = append(all, command(name, withSys(goPktgen, "--method", m.theirs, "--iface", near, "--srcip", source, "--dstip", dst, "--dstport", "9",
				"--srcmac", "02:00:00:00:00:01", "--dstmac", next, "--payloadsize", "18", "--duration", "-1")...))
			wanted = append(wanted, aim{name: m.ours, than: name, least: least})
		}
	}
	if _, err := exec.LookPath(wireblast); err == nil {
		all = append(all, command(wireblast, withSys(wireblast, "--no-tui", "-y", "-i", near, "--src-ip", source, "--dst-ip", dst, "--dst-mac", next, "--dst-port", "9",
			"--packet-size", "64", "--queues", "1", "--duration", "0", "--pps", "100M", "--rx-mode", "none")...))
		wanted = append(wanted, aim{name: "xdp", than: wireblast, least: least})
	}
	return all, wanted
}

// withSys returns a command that runs with a /sys of this network namespace, where programs look up the
// queues of interfaces.
func withSys(args ...string) []string {
	return append([]string{"unshare", "--mount", "sh", "-c", `mount -t sysfs sysfs /sys && exec "$@"`, "sh"}, args...)
}
