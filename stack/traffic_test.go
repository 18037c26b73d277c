package stack_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loam/wire"
)

// Every packet is counted once in each layer it passes, and nowhere else: each test lists
// all counters that an event changes.

// wantCounts calls the function happens and checks by how much all counters change.
func (w *peer) wantCounts(sentence, want string, happens func()) {
	w.t.Helper()
	synctest.Wait()
	before := w.s.Counters()
	happens()
	synctest.Wait()
	after := w.s.Counters()
	var added []string
	for c, n := range after.All() {
		switch d := n - before.Get(c); d {
		case 0:
		case 1:
			added = append(added, c.String())
		default:
			added = append(added, fmt.Sprint(c, "=", d))
		}
	}
	if got := strings.Join(added, " "); got != want {
		w.t.Errorf("%s adds\n     %s\nwant %s", sentence, got, want)
	}
	w.forget()
}

// Counters that each received packet and each sent packet increments.
const (
	in  = "eth.received ip.received ip.delivered "
	out = "eth.sent ip.sent "
)

func TestDatagramsAreCounted(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 53)
		defer c.Close()
		const both = "eth.received eth.sent ip.received ip.sent ip.delivered "
		w.wantCounts("a datagram for a socket", in+"udp.received", func() { w.sendUDP(1000, 53, "x") })
		w.wantCounts("a datagram for nobody", both+"icmp.sent icmp.errors_sent udp.received udp.no_port", func() { w.sendUDP(1000, 54, "x") })
		w.wantCounts("a datagram sent", out+"udp.sent", func() { mustWriteTo(t, c, "x", "10.0.0.2:1000") })
		w.wantCounts("a long datagram sent", "eth.sent=3 ip.sent ip.fragmented ip.fragments_sent=3 udp.sent", func() {
			mustWriteTo(t, c, strings.Repeat("x", 3000), "10.0.0.2:1000")
		})
		payload, _ := bigDatagram(addrA)
		w.wantCounts("a long datagram received", "eth.received=3 ip.received=3 ip.delivered ip.fragments=3 ip.reassembled udp.received", func() {
			w.sendFragments(wire.IPv4{Protocol: wire.ProtoUDP, ID: 1}, payload, 0, 3000)
		})
		w.wantCounts("an echo request", both+"icmp.received icmp.sent icmp.echo", func() {
			w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Echo}, nil)
		})
		mustConnect(t, c, "10.0.0.2:1000")
		mustWriteTo(t, c, "x", "10.0.0.2:1000")
		quote := w.want("a datagram", `udp 10.0.0.1:53 > 10.0.0.2:1000 "x"`).raw
		w.wantCounts("an error about a datagram", in+"icmp.received icmp.errors", func() {
			w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodePortUnreachable}, quote)
		})
	})
}

func TestConnectionsAreCounted(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		defer l.Close()
		p := w.tcp(5000, 80)
		const both = "eth.received eth.sent ip.received ip.sent ip.delivered tcp.received tcp.sent "
		w.wantCounts("a SYN that is answered", both+"tcp.passive_opens", func() {
			p.send(wire.SYN, "")
			p.want("a SYN is answered", "SA", "")
		})
		w.wantCounts("the end of a handshake", in+"tcp.received tcp.established", func() { p.send(wire.ACK, "") })
		w.wantCounts("data, with its acknowledgment", strings.TrimSpace(both), func() {
			p.send(wire.ACK, "hello")
			w.advance(time.Second)
		})
		c, err := l.TryAccept()
		if err != nil {
			t.Fatal(err)
		}
		w.wantCounts("data sent", out+"tcp.sent", func() { mustWrite(t, c, "x") })
		w.wantCounts("and sent again", out+"tcp.sent tcp.retransmits tcp.loss_timeouts", func() { w.advance(500 * time.Millisecond) })
		w.wantCounts("a reset", in+"tcp.received tcp.resets", func() { p.send(wire.RST, "") })
		c.Close()
		w.wantCounts("a segment for nobody", both+"tcp.no_port tcp.resets_sent", func() { p.send(wire.ACK, "") })

		var d *dialing
		w.wantCounts("a SYN sent", out+"tcp.sent tcp.active_opens", func() { d = startDial(w.s, "tcp", "10.0.0.2:81") })
		w.wantCounts("nobody answers", "eth.sent=7 ip.sent=7 tcp.sent=7 tcp.timeouts tcp.retransmits=7 tcp.loss_timeouts=7", func() { w.advance(10 * time.Minute) })
		if !d.returned() {
			t.Error("dial has not given up")
		}
	})
}
