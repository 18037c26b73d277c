//go:build linux

package netns

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Far is a second network namespace. It plays another host, for tests whose packets have to leave this
// one. A sleeping process keeps it alive.
type Far struct{ pid int }

// NewFar creates a namespace that is removed at the end of the test.
func NewFar(t testing.TB) *Far {
	t.Helper()
	Need(t)
	c := exec.Command("sleep", "3600")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	// The kernel kills the process (Pdeathsig) when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	f := &Far{c.Process.Pid}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	f.Do(t, prepare)
	return f
}

// Pid returns the ID of the process that keeps the namespace alive, for ip link set netns.
func (f *Far) Pid() string { return fmt.Sprint(f.pid) }

// Do calls fn in the far namespace. Sockets that fn opens stay in that namespace.
func (f *Far) Do(t testing.TB, fn func()) {
	t.Helper()
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	away, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", f.pid))
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	if err := unix.Setns(int(away.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	fn()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err) // the goroutine ends without unlocking its thread, which ends the thread too
	}
	runtime.UnlockOSThread()
}

// IP runs ip(8) in the far namespace and returns its output.
func (f *Far) IP(t testing.TB, args ...string) string {
	t.Helper()
	out := ""
	f.Do(t, func() { out = IP(t, args...) })
	return out
}

// IP runs ip(8) and returns its output.
func IP(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Received returns the number of frames that an interface of the far namespace has received.
func (f *Far) Received(t testing.TB, name string) uint64 {
	t.Helper()
	var links []struct {
		Stats struct {
			RX struct{ Packets uint64 }
		} `json:"stats64"`
	}
	text := f.IP(t, "-j", "-s", "link", "show", "dev", name)
	if err := json.Unmarshal([]byte(text), &links); err != nil || len(links) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	return links[0].Stats.RX.Packets
}

var wires atomic.Int32

// Wire connects the test's namespace (near) and the far namespace by a veth pair with two queues. Both ends are up
// and have the addresses 10.N.0.1/24 and 10.N.0.2/24. It returns the names and N. The pair is removed at the end of
// the test.
func (f *Far) Wire(t testing.TB) (near, far string, n int) {
	t.Helper()
	return f.WireOf(t, 2)
}

// WireOf is Wire with a given number of queues.
func (f *Far) WireOf(t testing.TB, queues int) (near, far string, n int) {
	t.Helper()
	n = int(wires.Add(1))
	near, far = fmt.Sprintf("near%d", n), fmt.Sprintf("far%d", n)
	q := fmt.Sprint(queues)
	IP(t, "link", "add", near, "numtxqueues", q, "numrxqueues", q, "type", "veth",
		"peer", "name", far, "netns", f.Pid(), "numtxqueues", q, "numrxqueues", q)
	t.Cleanup(func() { exec.Command("ip", "link", "del", near).Run() })
	IP(t, "addr", "add", fmt.Sprintf("10.%d.0.1/24", n), "dev", near)
	f.IP(t, "addr", "add", fmt.Sprintf("10.%d.0.2/24", n), "dev", far)
	IP(t, "link", "set", near, "up")
	f.IP(t, "link", "set", far, "up")
	awaitCarrier(t, near)
	return near, far, n
}
