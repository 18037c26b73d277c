//go:build linux

package genbench

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"loam/gen/bench"
)

// Generators in Go that are not Debian packages. Their sources are not part of this tree. They take part
// if LOAM_GEN_PEERS names a folder with checkouts of them:
//
//	mkdir peers && cd peers
//	git clone https://github.com/atoonk/go-pktgen
//	git clone https://github.com/atoonk/wireblast
//	git clone https://github.com/atoonk/go-afxdp      (both import it)
//	LOAM_GEN_PEERS=$PWD make genbench
//
// They are built in a temporary folder, with that go-afxdp in place of the published version. They are
// unchanged, except that wireblast locks less memory if the limit requires it: see lessMemory. Each
// method of go-pktgen is compared with the method of Loam that makes the same system calls, and
// wireblast with xdp.

// peersVariable is the environment variable that has the path of a folder with the source code of the other generators.
const peersVariable = "LOAM_GEN_PEERS"

const (
	goPktgen  = "go-pktgen"
	wireblast = "wireblast"
)

// likeOurs maps methods of Loam to the methods of go-pktgen that make the same system calls.
var likeOurs = []alike{
	{"net", "net_conn"}, {"udp", "udp_syscall"}, {"mmsg, plain", "pkt_conn"}, {"udpgso", "gso"}, {"raw", "raw_socket"},
	{"pcap", "af_pcap"}, {"packet", "af_packet"}, {"xdp", "af_xdp"},
}

// alike is a method of Loam and the method of go-pktgen that makes the same system calls.
type alike struct{ ours, theirs string }

// peer returns the name of the contestant.
func (a alike) peer() string { return goPktgen + ", " + a.theirs }

// queues returns the number of queues: af_xdp sends by all queues of the interface.
func (a alike) queues() int {
	if a.ours == "xdp" {
		return runtime.NumCPU()
	}
	return 1
}

// otherPairs is the number of pairs for these generators. They are bound to no processor, so they are
// compared in pairs only, with methods of Loam that are not bound either.
const otherPairs = 20

// others returns the generators whose sources are given, and the aims of Loam's methods compared with them.
func others(t testing.TB, near, dst string) (all []bench.Contestant, wanted []aim) {
	t.Helper()
	sources := os.Getenv(peersVariable)
	if sources == "" {
		return nil, nil
	}
	sources, err := filepath.Abs(sources)
	if err != nil {
		t.Fatal(err)
	}
	source := strings.TrimSuffix(dst, "2") + "1"
	const next = "02:00:00:00:00:99"
	program := buildPeer(t, sources, goPktgen, ".")
	for _, m := range likeOurs {
		c := command(m.peer(), withSys(program, "--method", m.theirs, "--iface", near, "--srcip", source, "--dstip", dst, "--dstport", "9",
			"--srcmac", "02:00:00:00:00:01", "--dstmac", next, "--payloadsize", "18", "--duration", "-1")...)
		c.Queues = m.queues()
		all = append(all, c)
	}
	program = buildPeer(t, sources, wireblast, "./cmd/wireblast")
	all = append(all, command(wireblast, withSys(program, "--no-tui", "-y", "-i", near, "--src-ip", source, "--dst-ip", dst, "--dst-mac", next, "--dst-port", "9",
		"--packet-size", "64", "--queues", "1", "--duration", "0", "--pps", "100M", "--rx-mode", "none")...))
	return all, otherAims()
}

// otherAims returns the aims for Loam's methods compared with the generators of this file.
func otherAims() (all []aim) {
	for _, m := range likeOurs {
		all = append(all, aim{name: m.ours, than: m.peer(), least: 1, pairs: otherPairs, queues: m.queues(), float: true})
	}
	return append(all, aim{name: "xdp", than: wireblast, least: 1, pairs: otherPairs, float: true})
}

// buildPeer builds a program from its sources and returns its path.
func buildPeer(t testing.TB, sources, name, pkg string) string {
	t.Helper()
	dir := t.TempDir()
	tree := filepath.Join(dir, "source")
	if err := os.CopyFS(tree, os.DirFS(filepath.Join(sources, name))); err != nil {
		t.Fatalf("%s: %v: see others_test.go for what it needs", peersVariable, err)
	}
	if name == wireblast {
		lessMemory(t, tree)
	}
	program := filepath.Join(dir, name)
	for _, args := range [][]string{
		{"mod", "edit", "-replace", "github.com/atoonk/go-afxdp=" + filepath.Join(sources, "go-afxdp")},
		{"build", "-buildvcs=false", "-o", program, pkg},
	} {
		c := exec.Command("go", args...)
		c.Dir = tree
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: go %v: %v\n%s", name, args, err, out)
		}
	}
	return program
}

// wireblastMemory is the locked memory that wireblast needs for a queue, in bytes.
const wireblastMemory = 26 << 20

// lessMemory makes wireblast start where less memory may be locked than it asks for: with buffers for
// 1024 frames in place of 4096, and without a reserve of 16 MiB. It changes nothing where the limit
// suffices.
func lessMemory(t testing.TB, tree string) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil || limit.Cur >= wireblastMemory {
		return
	}
	for _, change := range [][3]string{
		{"internal/dataplane/runner.go", "defaultNumFrames = 4096", "defaultNumFrames = 1024"},
		{"internal/dataplane/preflight.go", "+ 16<<20", ""},
	} {
		name := filepath.Join(tree, change[0])
		text, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(text, []byte(change[1])) {
			t.Fatalf("%s: %v, and %q is not in it: lessMemory does not fit this version", name, err, change[1])
		}
		if err := os.WriteFile(name, bytes.Replace(text, []byte(change[1]), []byte(change[2]), 1), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("wireblast: no more than %d bytes may be locked, so it has buffers for 1024 frames and not 4096", limit.Cur)
}

// withSys returns a command that runs with a /sys of this network namespace, where programs look up the
// queues of interfaces.
func withSys(args ...string) []string {
	return append([]string{"unshare", "--mount", "sh", "-c", `mount -t sysfs sysfs /sys && exec "$@"`, "sh"}, args...)
}
