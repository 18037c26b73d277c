package unikernel

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"loam/internal/race"
	"loam/usernet"
)

// clockTime is how long each machine's clock is observed.
const clockTime = 32 * time.Second

// A machine's clock is right from the start and stays right. Each reading lies between two readings of the
// host's clock, so a machine that answers slowly does not fail the test. Two machines are observed at the same time.
func TestMachineClock(t *testing.T) {
	t.Parallel()
	machines := map[string]MachineConfig{
		"q35, HPET":               {Model: "q35", CPUs: 2},
		"microvm, interval timer": {Model: "microvm"},
	}
	if race.Enabled { // the kernel's clock is the same in a race build
		delete(machines, "q35, HPET")
	}
	var clocks []*observedClock
	for name, m := range machines {
		c := dialClock(t, m)
		defer c.Close()
		clocks = append(clocks, observe(t, name, c))
	}
	tick := time.NewTicker(time.Second / 4)
	defer tick.Stop()
	for begin := time.Now(); time.Since(begin) < clockTime; <-tick.C {
		for _, c := range clocks {
			c.all = c.all.narrow(askClock(t, c.conn))
		}
	}
	for _, c := range clocks {
		c.check(t)
	}
}

// observedClock is the clock of a machine that TestMachineClock observes.
type observedClock struct {
	name       string
	conn       net.Conn // connection to the program clock
	first, all ahead    // the first reading, and all readings
}

// observe reads a clock for the first time. The clock must be right.
func observe(t *testing.T, name string, c net.Conn) *observedClock {
	t.Helper()
	const wrong = 50 * time.Millisecond
	first := askClock(t, c)
	if first.least > wrong || first.most < -wrong {
		t.Errorf("%s: at the start it is ahead by %v to %v", name, first.least, first.most)
	}
	return &observedClock{name, c, first, first}
}

// check fails the test if the clock was not steady.
func (c *observedClock) check(t *testing.T) {
	t.Helper()
	const unsteady = 5 * time.Millisecond
	t.Logf("%s: ahead by %v to %v at the start, by %v to %v all the time (a busy machine's figures)", c.name, c.first.least, c.first.most, c.all.least, c.all.most)
	if c.all.least-c.all.most > unsteady {
		t.Errorf("%s: it is ahead by %v at some time and by %v at another", c.name, c.all.least, c.all.most)
	}
}

// After QEMU was paused, a machine corrects its time of day. Its own clocks do not show that it was paused, so the loam
// command sends the time, to the millisecond.
func TestMachinePaused(t *testing.T) {
	t.Parallel() // it mostly waits
	const pause, wrong = 5 * time.Second, 50 * time.Millisecond
	for _, model := range []string{"q35", "microvm"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			monitor := filepath.Join(t.TempDir(), "monitor")
			c := dialClock(t, MachineConfig{Model: model, Monitor: monitor})
			defer c.Close()
			stopped := order(monitor, "stop")
			<-time.After(pause)
			if !order(monitor, "cont") || !stopped {
				t.Fatal("QEMU takes no orders")
			}
			tick := time.NewTicker(time.Second / 4)
			defer tick.Stop()
			for at := askClock(t, c); at.least > wrong || at.most < -wrong; at = askClock(t, c) {
				<-tick.C // bounded by the test's time limit
			}
		})
	}
}

// ahead bounds the difference between a clock and the host's clock: the clock is ahead by at least least and at most
// most, which may be negative.
type ahead struct{ least, most time.Duration }

// narrow combines two bounds on the same clock. If the clock has changed in between, least may exceed most.
func (a ahead) narrow(b ahead) ahead { return ahead{max(a.least, b.least), min(a.most, b.most)} }

// askClock reads the program's clock once.
func askClock(t *testing.T, c net.Conn) ahead {
	t.Helper()
	var b [8]byte
	before := time.Now()
	_, err := c.Write(b[:1])
	if err == nil {
		_, err = io.ReadFull(c, b[:])
	}
	after := time.Now()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(0, int64(binary.LittleEndian.Uint64(b[:])))
	return ahead{at.Sub(after.Round(0)), at.Sub(before.Round(0))}
}

// dialClock starts the clock program and connects to it.
func dialClock(t *testing.T, m MachineConfig) net.Conn {
	return dialProgram(t, Options{Target: Target{Platform: Machine}, Machine: m}, "clock")
}

// dialProgram starts a program of testdata and connects to it. The program listens on port 7, answers each
// byte with eight bytes, and ends with its connection.
func dialProgram(t *testing.T, o Options, program string) net.Conn {
	host := freePort(t)
	o.Target.Args = []string{"./testdata/guest/" + program}
	o.Network = Network{Kind: UserNetwork, Relay: o.Network.Relay, Forwards: []usernet.Forward{
		{Proto: "tcp", Host: host, Guest: netip.AddrPortFrom(netip.Addr{}, 7)},
	}}
	ended := make(chan error, 1) // the goroutine that runs the program sends its error once
	go func() {
		_, err := Run(t.Context(), o)
		ended <- err
	}()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return connect(t, host, ended)
}

// connect connects to a program as dialProgram describes it, and retries until the program answers. ended receives the
// program's error if it ends first.
func connect(t testing.TB, host netip.AddrPort, ended chan error) net.Conn {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(host))
		if err == nil {
			if _, err := c.Write(make([]byte, 1)); err == nil {
				if _, err := io.ReadFull(c, make([]byte, 8)); err == nil {
					return c
				}
			}
			c.Close()
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the program has ended: %v", err)
		case <-tick.C:
		}
	}
}
