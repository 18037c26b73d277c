package tcp

import (
	"math/rand/v2"
	"testing"
)

// segmentModel keeps the state of all sent bytes in a slow and simple way, byte by byte. The tests compare the
// sender's record with it.
type segmentModel struct {
	first Seq
	flags []sentFlags
}

func (m *segmentModel) check(t *testing.T, q *sentQueue) {
	t.Helper()
	var want struct{ sacked, lost, retrans, resend uint32 }
	for _, f := range m.flags {
		if f&sentSacked != 0 {
			want.sacked++
		}
		if f&sentLost != 0 {
			want.lost++
		}
		if f&sentRetrans != 0 {
			want.retrans++
		}
		if f&(sentLost|sentRetrans) == sentLost {
			want.resend++
		}
	}
	if q.sacked != want.sacked || q.lost != want.lost || q.retrans != want.retrans || q.resend != want.resend {
		t.Fatalf("sums %d %d %d %d, want %+v", q.sacked, q.lost, q.retrans, q.resend, want)
	}
	at := m.first
	for i := range q.len() {
		r := q.at(i)
		if r.seq != at {
			t.Fatalf("range %d begins at %d, want %d", i, r.seq, at)
		}
		for ; at != r.end; at++ {
			if f := m.flags[at-m.first]; f != r.flags {
				t.Fatalf("byte %d has flags %b, want %b", at-m.first, r.flags, f)
			}
		}
		if q.find(r.seq) != i || q.find(r.end-1) != i {
			t.Fatalf("range %d is not found", i)
		}
	}
	if int(at-m.first) != len(m.flags) {
		t.Fatalf("ranges cover %d bytes, want %d", at-m.first, len(m.flags))
	}
	if i := q.firstResend(); i >= 0 {
		for j := range i {
			if q.at(j).resend() {
				t.Fatalf("range %d waits to be sent again in front of the first, %d", j, i)
			}
		}
	}
}

func TestSentQueueAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		first := Seq(rng.Uint32())
		q, m := sentQueue{}, segmentModel{first: first}
		next := first
		for range 200 {
			switch k := rng.IntN(8); {
			case k < 3 || q.len() == 0:
				n := 1 + rng.IntN(50)
				q.push(sent{seq: next, end: next.Add(n), mss: 10})
				next = next.Add(n)
				m.flags = append(m.flags, make([]sentFlags, n)...)
			case k == 3:
				m.flags = m.flags[q.at(0).len():]
				m.first = q.at(0).end
				q.pop()
			case k == 4 && q.at(0).len() > 1:
				n := 1 + rng.IntN(q.at(0).len()-1)
				m.flags, m.first = m.flags[n:], m.first.Add(n)
				q.trimFront(m.first)
			case k == 5:
				i := rng.IntN(q.len())
				if r := q.at(i); r.len() > 1 && !q.split(i, r.seq.Add(1+rng.IntN(r.len()-1))) {
					t.Fatal("no room to split")
				}
			case k == 6:
				i := rng.IntN(q.len())
				if i+1 < q.len() && q.at(i).flags == q.at(i+1).flags {
					q.join(i)
				}
			case k == 7:
				r := q.at(rng.IntN(q.len()))
				f := []sentFlags{0, sentSacked, sentLost, sentRetrans, sentLost | sentRetrans}[rng.IntN(5)]
				q.setFlags(r, f, sentSacked|sentLost|sentRetrans)
				for s := r.seq; s != r.end; s++ {
					m.flags[s-m.first] = f
				}
			}
			m.check(t, &q)
		}
	}
}

func TestSentQueueIsBounded(t *testing.T) {
	var q sentQueue
	for i := range maxSent {
		q.push(sent{seq: Seq(2 * i), end: Seq(2*i + 2), mss: 1})
	}
	if !q.full() || q.split(0, 1) {
		t.Error("splits beyond the limit")
	}
}

func TestSmallSegmentsInFlightAreBounded(t *testing.T) {
	c := established(t, &Config{NoDelay: true, InitialWindow: 1000}, ", sackOK")
	for range maxSent + 100 {
		c.write(1)
		c.poll()
	}
	if got := c.flight(); got != maxSent {
		t.Fatalf("%d segments of a byte in flight, want %d", got, maxSent)
	}
	c.wantIdle()
	c.send("A 1 ack 2")
	c.want("PA 8193:8293 ack 1")

	// Selective acknowledgments cannot split the record of sent data into more ranges than the limit, either.
	c = established(t, &Config{NoDelay: true, InitialWindow: 1000}, ", sackOK")
	c.burst = 64_000
	c.write(9000)
	c.poll()
	for range maxSent - 1 {
		c.write(1)
		c.poll()
	}
	c.send("A 1 ack 1 <sack 2001-3001>")
	if c.sent.len() != maxSent || c.sent.sacked != 0 {
		t.Fatalf("%d ranges, %d bytes acknowledged selectively", c.sent.len(), c.sent.sacked)
	}
	c.send("A 1 ack 9001")
	c.send("A 1 ack 9001 <sack 9101-9201>")
	if c.sent.sacked != 100 {
		t.Fatalf("%d bytes acknowledged selectively", c.sent.sacked)
	}
}
