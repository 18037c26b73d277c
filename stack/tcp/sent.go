package tcp

// The record of what was sent and is not acknowledged (the scoreboard of RFC
// 6675, the per-segment state of RFC 8985).
//
// One sent is one range of sequence numbers that went out at one time: a segment,
// or several that left in one frame. The ranges of a sentQueue follow each other
// without gap from SND.UNA to SND.NXT, so that a range can be found by binary
// search. They are split where the peer has selectively acknowledged, or lost,
// only a part, and joined again where neighbours have both been acknowledged:
// there are never many more ranges than there are holes.
//
// The queue keeps the sums that the sender needs at every segment. A flag is only
// changed between account(r, -1) and account(r, +1), which is all that keeps the
// sums right.
//
// A linked list in order of transmission, which RACK could walk without looking
// at every range, was not worth its pointers: the walk ends early (see rack.go),
// and after joining there is little to walk.

type sentFlags uint8

const (
	sentSYN     sentFlags = 1 << iota // the first number is the SYN
	sentFIN                           // the last number is the FIN
	sentSacked                        // selectively acknowledged
	sentLost                          // taken for lost
	sentRetrans                       // a retransmission of it is in flight
)

// sent is a range of numbers that left at the same time.
type sent struct {
	seq, end Seq
	at       Time   // when it left, the last time
	mss      uint16 // the payload of each segment in it
	segs     uint16 // how many segments; saturates
	sends    uint8  // how often it left; saturates
	flags    sentFlags
}

// maxSent bounds the ranges of a connection. At the limit nothing new is sent
// and nothing is split, so that a peer that acknowledges every other segment of
// a large window holds no more memory and time than this.
const maxSent = 1 << 13

// maxGrown bounds the ranges that grow.
const maxGrown = 1 << 16

func (r *sent) len() int { return int(r.end - r.seq) }

// payload is the part that is data.
func (r *sent) payload() int {
	n := r.len()
	if r.flags&sentSYN != 0 {
		n--
	}
	if r.flags&sentFIN != 0 {
		n--
	}
	return n
}

// resend reports whether the range waits to be sent again.
func (r *sent) resend() bool { return r.flags&(sentLost|sentRetrans) == sentLost }

func (r *sent) countSegments() {
	n := (r.payload() + int(r.mss) - 1) / int(r.mss)
	r.segs = uint16(min(max(n, 1), 1<<16-1))
}

// sentQueue is a ring of ranges in order of sequence numbers.
type sentQueue struct {
	buf     []sent // as long as a power of two, or nil
	head, n uint32

	// Sums of bytes over the ranges with these flags, and segments.
	sacked, lost, retrans, resend uint32
	sackedSegs                    uint32

	resendFrom Seq // no range in front of this waits to be sent again
}

func (q *sentQueue) at(i int) *sent { return &q.buf[(q.head+uint32(i))&uint32(len(q.buf)-1)] }
func (q *sentQueue) len() int       { return int(q.n) }
func (q *sentQueue) last() *sent    { return q.at(int(q.n) - 1) }
func (q *sentQueue) full() bool     { return q.n >= maxSent }

// account adds r to the sums (by 1) or takes it out of them (by -1).
func (q *sentQueue) account(r *sent, by int) {
	if r.flags&(sentSacked|sentLost|sentRetrans) == 0 {
		return
	}
	n := uint32(r.len() * by)
	if r.flags&sentSacked != 0 {
		q.sacked += n
		q.sackedSegs += uint32(int(r.segs) * by)
	}
	if r.flags&sentLost != 0 {
		q.lost += n
	}
	if r.flags&sentRetrans != 0 {
		q.retrans += n
	}
	if r.resend() {
		if by > 0 && (q.resend == 0 || r.seq.Less(q.resendFrom)) {
			q.resendFrom = r.seq
		}
		q.resend += n
	}
}

// setFlags changes flags of a range and the sums with them.
func (q *sentQueue) setFlags(r *sent, set, clear sentFlags) {
	q.account(r, -1)
	r.flags = r.flags&^clear | set
	q.account(r, 1)
}

// push adds a range that has just left behind all others. If the last one left
// at the same time in whole segments, it grows: an owner that reads the clock
// once for many segments has one range for them.
func (q *sentQueue) push(r sent) {
	if q.n > 0 {
		if l := q.last(); l.at == r.at && l.mss == r.mss && l.sends == 1 && r.sends == 1 && l.flags == 0 &&
			l.len()%int(l.mss) == 0 && l.len()+r.len() <= maxGrown {
			l.end, l.flags = r.end, r.flags
			l.countSegments()
			return
		}
	}
	r.countSegments()
	if int(q.n) == len(q.buf) {
		q.grow()
	}
	q.n++
	*q.last() = r
}

func (q *sentQueue) grow() {
	buf := make([]sent, max(4, 2*len(q.buf)))
	for i := range q.len() {
		buf[i] = *q.at(i)
	}
	q.buf, q.head = buf, 0
}

// pop removes the first range.
func (q *sentQueue) pop() {
	q.account(q.at(0), -1)
	q.head++
	q.n--
}

// trimFront takes the numbers in front of seq, which lies inside the first
// range, out of it.
func (q *sentQueue) trimFront(seq Seq) {
	r := q.at(0)
	q.account(r, -1)
	r.seq = seq
	r.countSegments()
	q.account(r, 1)
}

// find is the index of the first range that ends behind seq.
func (q *sentQueue) find(seq Seq) int {
	lo, hi := 0, q.len()
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if seq.Less(q.at(mid).end) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// split cuts range i at seq, which lies inside it, and reports whether it did:
// at the limit of ranges it does not.
func (q *sentQueue) split(i int, seq Seq) bool {
	if q.full() {
		return false
	}
	if int(q.n) == len(q.buf) {
		q.grow()
	}
	q.n++
	for j := q.len() - 1; j > i; j-- {
		*q.at(j) = *q.at(j - 1)
	}
	front, back := q.at(i), q.at(i+1)
	q.account(front, -1)
	front.end, back.seq = seq, seq
	front.flags &^= sentFIN
	front.countSegments()
	back.countSegments()
	q.account(front, 1)
	q.account(back, 1)
	return true
}

// join makes one range of i and i+1, which the caller knows to be in the same
// state. The segments of sacked ranges add up; others are counted anew.
func (q *sentQueue) join(i int) {
	front, back := q.at(i), q.at(i+1)
	q.account(front, -1)
	q.account(back, -1)
	segs := int(front.segs) + int(back.segs)
	front.end = back.end
	front.flags |= back.flags & sentFIN
	front.sends = max(front.sends, back.sends)
	if front.flags&sentSacked != 0 {
		front.segs = uint16(min(segs, 1<<16-1))
	} else {
		front.countSegments()
	}
	q.account(front, 1)
	for j := i + 1; j < q.len()-1; j++ {
		*q.at(j) = *q.at(j + 1)
	}
	q.n--
}

// firstResend is the index of the first range that waits to be sent again, or -1.
func (q *sentQueue) firstResend() int {
	if q.resend == 0 {
		return -1
	}
	for i := q.find(q.resendFrom); i < q.len(); i++ {
		if r := q.at(i); r.resend() {
			q.resendFrom = r.seq
			return i
		}
	}
	panic("tcp: sums of sent ranges are wrong")
}

// release gives memory back; the queue is empty.
func (q *sentQueue) release() { *q = sentQueue{} }
