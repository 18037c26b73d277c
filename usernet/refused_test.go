package usernet

import (
	"net/netip"
	"testing"
	"time"

	"loam/usernet/hand"
)

// wantReported waits for the port of a refused connection.
func wantReported(t *testing.T, reported <-chan uint16) {
	t.Helper()
	select {
	case port := <-reported:
		if port != 80 {
			t.Errorf("reported port %d, want 80", port)
		}
	case <-time.After(patience):
		t.Error("no port was reported")
	}
}

// If the guest does not listen on a published port, Refused is called with the port.
func TestRefusedIsReported(t *testing.T) {
	reported := make(chan uint16, 10)
	n := newNetwork(t, Config{
		Forwards: []Forward{{Proto: "tcp", Guest: netip.MustParseAddrPort("10.0.2.15:80")}},
		Refused:  func(port uint16) { reported <- port },
	})
	wantResetAt(t, n.Forwards()[0].Host.String())
	wantReported(t, reported)
}

// The callback Config.Refused is also called if the program refuses a connection that was
// handed over. It is not called if the program accepts the connection.
func TestRefusedByTheProgramIsReported(t *testing.T) {
	checkLeaks(t)
	reported := make(chan uint16, 10)
	ours, program := packetPair(t)
	defer program.Close()
	n := newNetwork(t, Config{
		Program: ours, Forwards: []Forward{{Proto: "tcp", Guest: netip.MustParseAddrPort("10.0.2.15:80")}},
		Refused: func(port uint16) { reported <- port },
	})
	for _, refused := range []bool{false, true} {
		host := dialHostPort(t, n.Forwards()[0].Host.String())
		c, conn := taken(t, program)
		conn.Close()
		host.Close()
		sendEnds(t, program, hand.End{Client: c.Client, Refused: refused})
	}
	wantReported(t, reported)
	if len(reported) > 0 {
		t.Error("an accepted connection is reported too")
	}
}
