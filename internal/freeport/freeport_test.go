package freeport

import (
	"net"
	"net/netip"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// Concurrent tests get different ports.
func TestNext(t *testing.T) {
	var all sync.Map
	var side sync.WaitGroup
	for range 4 {
		side.Go(func() {
			for range 100 {
				at, err := Next()
				if err != nil || at.Addr() != netip.MustParseAddr("127.0.0.1") || at.Port() < first || at.Port() >= first+count {
					t.Errorf("%v, %v", at, err)
				}
				if _, twice := all.LoadOrStore(at, true); twice {
					t.Errorf("%v twice", at)
				}
			}
		})
	}
	side.Wait()
}

// A port is free a moment after Next has returned it, also if the process starts programs meanwhile. (In about one of 10,000 calls,
// Linux still reports the port as in use for a moment.)
func TestNextBesideForks(t *testing.T) {
	done := make(chan struct{})
	var forks sync.WaitGroup
	defer forks.Wait()
	defer close(done)
	for range 2 {
		forks.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					exec.Command("true").Run()
				}
			}
		})
	}
	for range 500 {
		at, err := Next()
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
		for start := time.Now(); err != nil && time.Since(start) < time.Second; time.Sleep(time.Millisecond) {
			l, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
		}
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}
