package tcp

import "testing"

// ICMP (RFC 9293 section 3.9.2.2, RFC 5927) and path MTU (RFC 1191, RFC 8201).

func TestHardErrorEndsOpening(t *testing.T) {
	c := dial(t, nil)
	c.want("S 0")
	if !c.ICMP(c.now, ICMPRefused, testISS, 0) {
		t.Error("message not believed")
	}
	c.wantEnd(ErrRefused)
}

func TestHardErrorDoesNotEndConnection(t *testing.T) {
	c := sending(t, nil, "", 10)
	c.ICMP(c.now, ICMPRefused, testISS+1, 0) // no message ends an established connection (RFC 5927 section 5.2)
	c.wantState(Established)
	c.send("A 1 ack 10001")
	c.wantState(Established)
}

func TestSoftErrorInOpening(t *testing.T) {
	c := dial(t, &Config{SynRetries: 1})
	c.want("S 0")
	c.ICMP(c.now, ICMPUnreachable, testISS, 0)
	c.wantState(SynSent) // the attempt continues, since the error may be transient
	c.advance(c.Deadline() - c.now)
	c.want("S 0")
	c.advance(c.Deadline() - c.now)
	c.wantEnd(ErrUnreachable)
}

func TestForgedICMPIsIgnored(t *testing.T) {
	c := sending(t, nil, "", 10)
	for _, seq := range []uint32{testISS, testISS + 10001, testISS - 5000, 7} {
		for _, kind := range []ICMPKind{ICMPUnreachable, ICMPRefused, ICMPTooBig} {
			if c.ICMP(c.now, kind, seq, 600) {
				t.Errorf("kind %d about %d, which is not in flight, is believed", kind, seq)
			}
		}
	}
	c.wantCount(DropICMP, 12)
	if c.ICMP(c.now, ICMPTooBig, testISS+1, 1460) {
		t.Error("an MTU that is no smaller is believed")
	}
}

// The stack uses HasSent to decide whether a redirect is about a segment in flight.
func TestHasSent(t *testing.T) {
	c := sending(t, nil, "", 10)
	for seq, want := range map[uint32]bool{testISS: false, testISS + 1: true, testISS + 10000: true, testISS + 10001: true, testISS + 10002: false} {
		if got := c.HasSent(seq); got != want {
			t.Errorf("a segment at %d: %v", seq-testISS, got)
		}
	}
}
