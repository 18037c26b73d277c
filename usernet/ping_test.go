package usernet

import (
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
)

// newTestPinger returns a pinger with the kind of socket that this machine permits.
func newTestPinger(t *testing.T, places int) (*pinger, *tally) {
	t.Helper()
	socket, err := newICMPSocket(ipv4)
	if err != nil {
		t.Skip(err)
	}
	counts := new(tally)
	p := newPinger(places, socket, nil, counts, nil)
	done := make(chan struct{})
	go func() { p.loop(); close(done) }()
	t.Cleanup(func() {
		socket.close()
		<-done
	})
	return p, counts
}

func TestPingIsAnsweredWhenTheHostIs(t *testing.T) {
	p, counts := newTestPinger(t, 8)
	for _, size := range []int{0, 56, 1400, 9000} {
		answered := make(chan struct{}) // closed by the pinger
		p.send(hostLoopback, make([]byte, size), func() { close(answered) })
		<-answered
	}
	wantCount(t, counts, PingOut, 4)
	wantCount(t, counts, PingIn, 4)
}

func TestPingRequestsWithoutAnAnswerAreBounded(t *testing.T) {
	const places, many = 4, 100
	counts := new(tally)
	socket, err := newICMPSocket(ipv4)
	if err != nil {
		t.Skip(err)
	}
	defer socket.close()
	p := newPinger(places, socket, nil, counts, nil) // no goroutine reads replies, so no request is answered
	for range many {
		p.send(hostLoopback, nil, func() { t.Error("answered") })
	}
	wantCount(t, counts, PingLost, many-places)
}

func TestPingReplyAnswersOnlyItsRequest(t *testing.T) {
	p := newPinger(4, nil, nil, new(tally), nil)
	other := netip.MustParseAddr("192.0.2.9")
	p.waiting[1] = echo{dst: hostLoopback, seq: 5, reply: func() {}}
	for _, test := range []struct {
		from netip.Addr
		seq  uint16
		want bool
	}{{other, 5, false}, {hostLoopback, 1, false}, {hostLoopback, 6, false}, {hostLoopback, 5, true}, {hostLoopback, 5, false}} {
		if _, ok := p.take(test.from, test.seq); ok != test.want {
			t.Errorf("a reply from %v to number %d is taken: %v", test.from, test.seq, ok)
		}
	}
}

func TestPingWithoutASocketIsCountedAndLoggedOnce(t *testing.T) {
	counts, log := new(tally), new(strings.Builder)
	p := newPinger(4, nil, errors.New("not allowed"), counts, slog.New(slog.NewTextHandler(log, nil)))
	for range 3 {
		p.send(hostLoopback, nil, func() { t.Error("answered") })
	}
	wantCount(t, counts, PingNoSocket, 3)
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "not allowed") {
		t.Errorf("the log says %q", got)
	}
}

func TestPingGatewayAndUnassignedAddress(t *testing.T) {
	n := newNetwork(t, Config{})
	if _, err := n.guest.Ping(ctx(t), netip.MustParseAddr("10.0.2.2"), 56); err != nil {
		t.Errorf("the gateway does not answer: %v", err)
	}
	p, err := n.guest.ListenPing(netip.Addr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Send(netip.MustParseAddr("0.1.2.3"), 1, nil)
	n.wantCounter(PingDenied, 1)
}
