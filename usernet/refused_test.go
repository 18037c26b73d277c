package usernet

import (
	"net/netip"
	"testing"
	"time"

	"loam/usernet/hand"
)

// wantTold waits for the port of a refused connection.
func wantTold(t *testing.T, told <-chan uint16) {
	t.Helper()
	select {
	case port := <-told:
		if port != 80 {
			t.Errorf("told of port %d, want 80", port)
		}
	case <-time.After(patience):
		t.Error("nobody was told")
	}
}

// If the guest does not listen on a published port, Refused is called with the port.
func TestRefusedIsTold(t *testing.T) {
	told := make(chan uint16, 10)
	n := newNetwork(t, Config{
		Forwards: []Forward{{Proto: "tcp", Guest: netip.MustParseAddrPort("10.0.2.15:80")}},
		Refused:  func(port uint16) { told <- port },
	})
	wantResetAt(t, n.Forwards()[0].Host.String())
	wantTold(t, told)
}

// Refused is also called if a program refuses a connection passed to it, and only then.
func TestRefusedByTheProgramIsTold(t *testing.T) {
	checkLeaks(t)
	told := make(chan uint16, 10)
	ours, program := packetPair(t)
	defer program.Close()
	n := newNetwork(t, Config{
		Program: ours, Forwards: []Forward{{Proto: "tcp", Guest: netip.MustParseAddrPort("10.0.2.15:80")}},
		Refused: func(port uint16) { told <- port },
	})
	for _, refused := range []bool{false, true} {
		host := dialHostPort(t, n.Forwards()[0].Host.String())
		c, conn := taken(t, program)
		conn.Close()
		host.Close()
		tell(t, program, hand.End{Client: c.Client, Refused: refused})
	}
	wantTold(t, told)
	if len(told) > 0 {
		t.Error("a connection that was taken is told of, too")
	}
}
