package dhcp

import (
	"testing"
	"time"

	"loam/wire"
)

// ---- BOUND, RENEWING, REBINDING (RFC 2131 section 4.4.5) ----

func TestRenew(t *testing.T) {
	tc := boundClient(t)
	tc.advance("at T1", 28*time.Minute, 30*time.Minute)
	m := tc.want("it asks its server for more time", wire.DHCPv4Request)
	tc.wantState(Renewing)
	if tc.from != guestIP || tc.to != serverIP || m.CIAddr != guestIP {
		t.Errorf("from %v to %v, ciaddr %v; want from its address to the server", tc.from, tc.to, m.CIAddr)
	}
	if m.RequestedIP().IsValid() || m.ServerID().IsValid() || m.Broadcast {
		t.Error("requested address and server must not be filled in")
	}
	asked := tc.now
	tc.now += time.Second
	tc.reply(wire.DHCPv4Ack)
	e := tc.wantEvent("and gets it", Renewed, 0)
	if e.Lease.Expires != asked+time.Hour {
		t.Errorf("it runs for another %v, want an hour", e.Lease.Expires-asked)
	}
	tc.wantState(Bound)
	tc.advance("at the next T1", 27*time.Minute, 30*time.Minute)
	tc.want("it asks again", wire.DHCPv4Request)
}

func TestRenewRepeatedThenRebindThenExpiry(t *testing.T) {
	tc := boundClient(t)
	lease, _ := tc.c.Lease()
	tc.advance("at T1", 28*time.Minute, 30*time.Minute)
	tc.want("", wire.DHCPv4Request)
	for tc.c.Deadline() < lease.T2 {
		half := max(time.Minute, (lease.T2-tc.now)/2)
		tc.advance("it waits for half of the time until T2", half, half)
		tc.want("and asks its server again", wire.DHCPv4Request)
		tc.wantState(Renewing)
		if tc.to != serverIP {
			t.Errorf("to %v", tc.to)
		}
	}
	tc.advance("at T2", 0, time.Minute)
	for {
		m := tc.want("it asks everybody", wire.DHCPv4Request)
		tc.wantState(Rebinding)
		if tc.now < lease.T2 || tc.to != everyone || tc.from != guestIP || m.CIAddr != guestIP || m.ServerID().IsValid() || m.RequestedIP().IsValid() {
			t.Fatalf("after %v from %v to %v: %+v", tc.now-lease.Start, tc.from, tc.to, m)
		}
		if tc.c.Deadline() == lease.Expires {
			break
		}
		tc.advance("and again", time.Minute, 4*time.Minute)
	}
	tc.wantNoEvent("the lease still holds")
	tc.advance("until it ends", 0, time.Minute)
	e := tc.wantEvent("then the address has to go", Lost, Expired)
	if e.Lease.Addr.Addr() != guestIP || tc.now != lease.Expires {
		t.Errorf("lost %v after %v", e.Lease.Addr, tc.now-lease.Start)
	}
	m := tc.want("and it starts afresh", wire.DHCPv4Discover)
	if m.RequestedIP() != guestIP {
		t.Error("wishing for what it had")
	}
}

func TestRebindToAnotherServer(t *testing.T) {
	tc := boundClient(t)
	tc.advance("T1", 28*time.Minute, 30*time.Minute)
	tc.want("", wire.DHCPv4Request)
	tc.reply(wire.DHCPv4Ack, fromServer("10.0.2.9"))
	tc.wantNoEvent("before T2 only its server counts")
	tc.jump(25 * time.Minute)
	tc.want("after T2", wire.DHCPv4Request)
	tc.reply(wire.DHCPv4Ack, fromServer("10.0.2.9"))
	if e := tc.wantEvent("any server will do", Renewed, 0); e.Lease.Server != addr("10.0.2.9") {
		t.Errorf("server %v", e.Lease.Server)
	}
	tc.advance("T1", 28*time.Minute, 30*time.Minute)
	tc.want("", wire.DHCPv4Request)
	if tc.to != addr("10.0.2.9") {
		t.Errorf("renews with %v, want the new server", tc.to)
	}
}

func TestNakWithALease(t *testing.T) {
	for name, sleep := range map[string]time.Duration{"renewing": 31 * time.Minute, "rebinding": 53 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			tc := boundClient(t)
			tc.reply(wire.DHCPv4Nak)
			tc.wantNoEvent("nothing was asked, so nothing can be refused")
			tc.jump(sleep)
			tc.want("", wire.DHCPv4Request)
			tc.reply(wire.DHCPv4Nak)
			tc.wantEvent("the address has to go at once", Lost, Refused)
			if m := tc.want("and it starts afresh", wire.DHCPv4Discover); m.RequestedIP().IsValid() {
				t.Error("wishing for what was refused")
			}
		})
	}
}

// A machine may be suspended past T1, T2 and the end of its lease.
func TestWakingUpLate(t *testing.T) {
	for sleep, want := range map[time.Duration]State{
		31 * time.Minute: Renewing, 53 * time.Minute: Rebinding, 2 * time.Hour: Selecting,
	} {
		tc := boundClient(t)
		tc.jump(sleep)
		tc.wantState(want)
		if want == Selecting {
			tc.wantEvent("an expired address is not used for a moment longer", Lost, Expired)
		}
	}
}

func TestAckThatComesTooLate(t *testing.T) {
	tc := newTestClient(t)
	tc.want("", wire.DHCPv4Discover)
	tc.reply(wire.DHCPv4Offer)
	tc.want("", wire.DHCPv4Request)
	tc.now += 10 * time.Second
	tc.reply(wire.DHCPv4Ack, forTime(10*time.Second))
	tc.wantNoEvent("a lease that is over when it arrives is none")
}

func TestInfiniteLease(t *testing.T) {
	tc := newTestClient(t)
	tc.want("", wire.DHCPv4Discover)
	tc.reply(wire.DHCPv4Offer, forTime(wire.DHCPv4Infinite))
	tc.want("", wire.DHCPv4Request)
	tc.reply(wire.DHCPv4Ack, forTime(wire.DHCPv4Infinite))
	if e := tc.wantEvent("", Acquired, 0); e.Lease.Expires != Never || tc.c.Deadline() != Never {
		t.Errorf("until %v, deadline %v; want never", e.Lease.Expires, tc.c.Deadline())
	}
}
