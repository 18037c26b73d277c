//go:build linux

package afxdp_test

import (
	"bufio"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"loam/internal/netns"
	"loam/link"
	"loam/link/afxdp"
	"loam/link/linktest"
)

// victim is an environment variable. If it is set, this test program opens devices on two
// interfaces and sends until it is killed.
const victim = "LOAM_TEST_AFXDP_VICTIM"

func TestMain(m *testing.M) {
	if names := os.Getenv(victim); names != "" {
		sendForEver(strings.Fields(names))
	}
	netns.Main(m)
}

func sendForEver(names []string) {
	var ends []*afxdp.Device
	for _, name := range names {
		d, err := afxdp.Open(afxdp.Config{Interface: name, Promiscuous: true})
		if err != nil {
			panic(err)
		}
		ends = append(ends, d)
	}
	os.Stdout.WriteString("open\n")
	for i := uint32(0); ; i++ {
		f := linktest.Plain(link.Ethernet, 200, i)
		if n, err := ends[0].Queues()[0].Send([]*link.Frame{f}); n != 1 || err != nil {
			f.Free()
		}
	}
}

// A process that is killed while it sends and receives leaves no program and no promiscuous mode on
// its interfaces, and its queue is free.
func TestKilled(t *testing.T) {
	const runs = 10
	from, to := netns.Veth(t, 1500, 1)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range runs {
		c := exec.Command(self)
		c.Env = append(os.Environ(), victim+"="+from+" "+to)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(line, err)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond)))) // kills at a random time
		c.Process.Kill()
		c.Wait()
		checkClean(t, from)
		checkClean(t, to)
	}
	a, b := open(t, afxdp.Config{Interface: from}), open(t, afxdp.Config{Interface: to})
	defer a.Close()
	defer b.Close()
	send(t, a, linktest.Plain(link.Ethernet, 100, 1))
	fs := make([]*link.Frame, 1)
	if _, err := b.Queues()[0].Recv(fs); err != nil {
		t.Fatal(err)
	}
	fs[0].Free()
}
