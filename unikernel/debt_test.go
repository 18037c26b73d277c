package unikernel

import (
	"encoding/binary"
	"io"
	"slices"
	"testing"
	"time"
)

// A goroutine that a computing goroutine starts runs on another thread at once. In most cases it starts before the
// runtime's monitor would wake a thread for it, which takes 10 ms.
func TestDeferredWake(t *testing.T) {
	forBothNetworks(t, func(t *testing.T, n Network) {
		late := lateness(t, n, "GOMAXPROCS=2", 300, 0)
		t.Logf("median %v, longest %v", late[len(late)/2], late[len(late)-1])
		if late[len(late)/2] > 10*time.Millisecond {
			t.Errorf("half of them start only after %v", late[len(late)/2])
		}
	})
}

// forBothNetworks runs f twice. With relayed connections, loops of Loam's stack make the program's goroutines
// runnable; with handed-over connections, the runtime's poller does.
func forBothNetworks(t *testing.T, f func(t *testing.T, n Network)) {
	t.Run("relayed", func(t *testing.T) { f(t, Network{Relay: true}) })
	t.Run("handed", func(t *testing.T) { f(t, Network{}) })
}

// The goroutine also starts at once if the program has been idle and only one thread is awake. The runtime's monitor
// sleeps then, and would notice the goroutine only after seconds.
func TestSleepingMonitor(t *testing.T) {
	forBothNetworks(t, func(t *testing.T, n Network) {
		late := lateness(t, n, "GOMAXPROCS=1", 10, 200*time.Millisecond)
		if late[len(late)/2] > 500*time.Millisecond {
			t.Errorf("half of them start only after %v", late[len(late)/2])
		}
	})
}

// lateness makes the program "late" start goroutines. The parameter times is their number, and rest is the pause before
// each. It returns the delays from start to first instruction, sorted.
func lateness(t *testing.T, n Network, procs string, times int, rest time.Duration) (late []time.Duration) {
	c := dialProgram(t, Options{Env: []string{procs}, Network: n}, "late")
	defer c.Close() // the program ends with this connection
	for b := make([]byte, 8); len(late) < times; {
		time.Sleep(rest)
		if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(b[:1]); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatalf("after %d goroutines one did not start: %v", len(late), err)
		}
		late = append(late, time.Duration(binary.LittleEndian.Uint64(b)))
	}
	slices.Sort(late)
	return late
}
