//go:build linux

package method

import (
	"strings"
	"testing"
	"time"

	"loam/internal/netns"
	"loam/link/match"
	"loam/wire"
)

// A sender and a receiver of the same queue share its socket. They can be opened and closed in any order.
func TestXDPSharesAQueue(t *testing.T) {
	l := newLab(t)
	r := l.listen(t, "xdp")
	echo := l.config // the sender at the far end uses the queue of the receiver
	echo.Interface = l.far
	for _, receiverFirst := range []bool{true, false} {
		var s Sender
		var back Receiver
		open := func() {
			var err error
			l.Do(t, func() { s, err = openXDP(echo) })
			if err != nil {
				t.Fatal(err)
			}
		}
		listen := func() {
			var err error
			if back, err = listenXDP(l.config); err != nil {
				t.Fatal(err)
			}
		}
		if receiverFirst {
			listen()
			open()
		} else {
			open()
			listen()
		}
		there, err := openXDP(l.config)
		if err != nil {
			t.Fatal(err)
		}
		for _, way := range []struct {
			from Sender
			to   Receiver
		}{{there, r}, {s, back}} {
			n, err := way.from.Send(10, func(slot []byte) int { return l.put(slot, Frame, body(3)) })
			if err != nil || n != 10 {
				t.Fatal(n, err)
			}
			if got := collect(t, way.to, 10); len(got) != 10 {
				t.Errorf("%d of 10 arrived", len(got))
			}
		}
		for _, c := range []interface{ Close() error }{s, there, back} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if text := netns.IP(t, "-d", "link", "show", l.near); strings.Contains(text, "xdp") {
		t.Errorf("a program is left behind:\n%s", text)
	}
}

// Two queues have a sender and a receiver each, and share one XDP program.
func TestXDPQueues(t *testing.T) {
	l := newLab(t)
	for queue := range 2 {
		c := l.config
		c.Queue, c.Interface = queue, l.far
		c.Match = []match.Rule{{Protocol: wire.ProtoUDP}}
		var r Receiver
		var err error
		l.Do(t, func() { r, err = listenXDP(c) })
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		c.Interface = l.near
		s, err := openXDP(c)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if n, err := s.Send(5, func(slot []byte) int { return l.put(slot, Frame, body(queue)) }); n != 5 || err != nil {
			t.Fatal(n, err)
		}
		if got := collect(t, r, 5); len(got) != 5 || !strings.HasPrefix(got[0], string(body(queue))) {
			t.Errorf("queue %d: %.20q", queue, got)
		}
	}
}

// A second sender, a second receiver, or other rules on the same queue are rejected.
func TestXDPRefusals(t *testing.T) {
	l := newLab(t)
	s, err := openXDP(l.config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := listenXDP(l.config)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := openXDP(l.config); err == nil || !strings.Contains(err.Error(), "has a sender already") {
		t.Errorf("a second sender: %v", err)
	}
	if _, err := listenXDP(l.config); err == nil || !strings.Contains(err.Error(), "has a receiver already") {
		t.Errorf("a second receiver: %v", err)
	}
	c := l.config
	c.Queue, c.Match = 1, []match.Rule{{Protocol: wire.ProtoTCP}}
	if _, err := listenXDP(c); err == nil || !strings.Contains(err.Error(), "the same frames") {
		t.Errorf("other rules: %v", err)
	}
	c.Match = nil
	again, err := listenXDP(c)
	if err != nil {
		t.Errorf("the same rules, after others were refused: %v", err)
	} else if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// A receiver that is not read counts dropped frames, even after it is closed, and does not wait longer than its
// timeout.
func TestXDPDrops(t *testing.T) {
	l := newLab(t)
	r := l.listen(t, "xdp")
	if n, err := r.Receive(0, nil); n != 0 || err != nil {
		t.Error(n, err)
	}
	if n, err := r.Receive(time.Millisecond, nil); n != 0 || err != nil {
		t.Error(n, err)
	}
	s, err := openXDP(l.config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const more = 100
	for sent := 0; sent < xdpRxFrames+more; {
		n, err := s.Send(min(64, xdpRxFrames+more-sent), func(slot []byte) int { return l.put(slot, Frame, nil) })
		if err != nil {
			t.Fatal(err)
		}
		sent += n
	}
	if err := s.Flush(time.Second); err != nil {
		t.Fatal(err)
	}
	if got := r.Drops(); got != more {
		t.Errorf("%d dropped, want %d", got, more)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if got := r.Drops(); got != more {
		t.Errorf("closed: %d dropped, want %d", got, more)
	}
}
