package tcp

import (
	"fmt"
	"testing"
	"time"
)

// These tests play blind attacks, as described in RFC 5961.

func TestBlindAttacks(t *testing.T) {
	for _, a := range []struct {
		segment string
		says    string // the answer of the connection: a challenge ACK; "": none
		counter Counter
	}{
		{"R 1001", "", NumCounters}, // for comparison: a reset with this exact number is accepted
		{"R 1002", "A 1 ack 1001", DropRST},
		{"R 60000", "A 1 ack 1001", DropRST},
		{"R 1000", "", DropSequence},
		{"R 70000", "", DropSequence},
		{"S 1001", "A 1 ack 1001", DropSYN},
		{"S 30000", "A 1 ack 1001", DropSYN},
		{"S 70000", "A 1 ack 1001", DropSequence},
		{"SA 1001 ack 1", "A 1 ack 1001", DropSYN},
		{"PA 1001:1101 ack 2", "A 1 ack 1001", DropAck},
		{"PA 1001:1101 ack 1000000", "A 1 ack 1001", DropAck},
		{"PA 1001:1101 ack -50001", "A 1 ack 1001", DropAck}, // acknowledges data older than the largest window
		{"PA 1001:1101 ack -2000000000", "A 1 ack 1001", DropAck},
		{"FA 1001 ack 1000000", "A 1 ack 1001", DropAck},
		{"P 1001:1101", "", DropNoAck},
		{"F 1001", "", DropNoAck},
		{"UP 1001:1101 urg 5", "", DropNoAck},
	} {
		c := established(t, nil, "")
		c.send("A 1:1001 ack 1")
		c.advance(40 * ms)
		c.want("A 1 ack 1001")
		c.send(a.segment)
		if a.counter == NumCounters {
			c.wantEnd(ErrReset)
			continue
		}
		if a.says != "" {
			c.want(a.says)
		}
		c.wantIdle()
		c.wantState(Established)
		c.wantReadable(1000)
		c.wantCount(a.counter, 1)
		c.send("PA 1001:1101 ack 1") // the connection is still open
		c.wantReadable(1100)
	}
}

func TestOldAckWithinLargestWindowIsAccepted(t *testing.T) {
	c := established(t, nil, "")
	sent := 1
	for sent <= 60000 {
		c.write(1000)
		c.drain()
		sent += 1000
		c.send(fmt.Sprintf("A 1 ack %d win 50000", sent))
	}
	c.drain()
	c.send(fmt.Sprintf("PA 1:101 ack %d win 50000", sent-50001))
	c.wantReadable(0)
	// This is the oldest acknowledgment that is accepted: SND.UNA - MAX.SND.WND =< SEG.ACK.
	c.send(fmt.Sprintf("PA 1:101 ack %d win 50000", sent-50000))
	c.wantReadable(100)
}

// An acknowledgment of numbers that were never sent is not treated as an old acknowledgment. The large
// window at the start must not help an attacker.
func TestAckOfNothingSent(t *testing.T) {
	// Acknowledgment 0 is an old one, from before the SYN was acknowledged.
	for ack, readable := range map[string]uint64{"-1": 0, "-49999": 0, "0": 100} {
		c := established(t, nil, "")
		c.send("PA 1:101 ack " + ack)
		c.wantReadable(readable)
		if readable == 0 {
			c.want("A 1 ack 1")
			c.wantCount(DropAck, 1)
		}
	}
}

func TestChallengesAreLimited(t *testing.T) {
	c := established(t, nil, "")
	for range 50 {
		c.send("R 1002")
		c.drain()
	}
	c.wantCount(ChallengeAcks, 10) // the limit (RFC 5961 section 7)
	c.wantCount(ChallengeLimit, 40)
	c.advance(500 * ms)
	c.send("R 1002")
	c.send("R 1002")
	c.wantCount(ChallengeAcks, 1) // after the first ten, two challenge ACKs in each second
	c.advance(5 * time.Second)
	c.send("R 1002")
	c.want("A 1 ack 1")
	// Answers to segments without data are limited, too, so that two hosts whose sequence numbers disagree do not
	// answer each other forever.
	for range 50 {
		c.send("A 0 ack 1")
		c.drain()
	}
	c.wantCount(ChallengeAcks, 10)
}

func TestPeerThatLostItsStateIsLetGo(t *testing.T) {
	// Half-open connection discovery, RFC 9293 figure 9.
	c := established(t, nil, "")
	c.send("S 400 win 60000 <mss 1000>") // the peer has restarted and opens a new connection
	c.want("A 1 ack 1")                  // the answer contains our numbers
	c.send("R 1")                        // the peer has no connection with these numbers
	c.wantEnd(ErrReset)
}

func TestResetForUnknownConnection(t *testing.T) {
	c := newTest(t)
	for _, x := range []struct{ in, out string }{
		{"A 7 ack 9", "R 9"},              // <SEQ=SEG.ACK><CTL=RST>
		{"PA 7:17 ack 9", "R 9"},          // data does not change the answer
		{"SA 7 ack 9", "R 9"},             //
		{"S 7", "RA -1000000 ack 8"},      // <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>
		{"F 7:17", "RA -1000000 ack 18"},  //
		{"SF 7:17", "RA -1000000 ack 19"}, // the SYN and the FIN count in SEG.LEN
		{"R 7", ""}, {"RA 7 ack 9", ""},   // a reset is never answered with a reset
	} {
		var out Out
		seg := c.parse(x.in)
		if !ResetFor(seg, &out.TCP) {
			if x.out != "" {
				t.Errorf("no answer to %s", x.in)
			}
			continue
		}
		if got := c.format(&out); got != x.out || out.SrcPort != 80 || out.DstPort != 40000 {
			t.Errorf("%s is answered by %s, want %s", x.in, got, x.out)
		}
	}
}
