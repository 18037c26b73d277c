package tcp

// The record of data that was sent and is not acknowledged (the scoreboard of RFC 6675, the per-segment state
// of RFC 8985).
//
// A sent is a range of sequence numbers that left at one time: a segment, or several in one frame. The ranges
// of a sentQueue are contiguous from SND.UNA to SND.NXT, so binary search finds a range. A range is split
// where the peer has acknowledged, or lost, only a part. Neighbours are joined again when both have been
// acknowledged. There are therefore never many more ranges than holes.
//
// The queue maintains the sums that the sender needs for every segment. The sums stay correct because a flag
// changes only between account(r, -1) and account(r, +1).
//
// Rejected: a linked list in order of transmission, which RACK could walk without visiting every range. The
// walk ends early (see rack.go), and after joining few ranges are left.

// sentFlags is a set of properties of a sent range.
type sentFlags uint8

const (
	sentSYN     sentFlags = 1 << iota // the first number is a SYN
	sentFIN                           // the last number is a FIN
	sentSacked                        // the range was selectively acknowledged
	sentLost                          // the range is considered lost
	sentRetrans                       // a retransmission of the range is in flight
)

// sent is a range of sequence numbers that were sent at the same time.
type sent struct {
	seq, end Seq
	at       Time   // time of the last transmission
	mss      uint16 // payload of each segment in the range in bytes
	segs     uint16 // number of segments; stops at its maximum
	sends    uint8  // number of transmissions; stops at its maximum
	flags    sentFlags
}

// maxSent bounds the ranges of a connection. At the limit no new data is sent and no range is split. A peer
// that acknowledges every other segment of a large window cannot use more memory and time.
const maxSent = 1 << 13

// maxGrown is the maximum size of a range that push extends, in bytes.
const maxGrown = 1 << 16

func (r *sent) len() int { return int(r.end - r.seq) }

// payload returns the number of data bytes, without SYN and FIN.
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

// resend reports whether the range is lost and waits to be retransmitted.
func (r *sent) resend() bool { return r.flags&(sentLost|sentRetrans) == sentLost }

// countSegments sets segs from the payload and mss.
func (r *sent) countSegments() {
	n := (r.payload() + int(r.mss) - 1) / int(r.mss)
	r.segs = uint16(min(max(n, 1), 1<<16-1))
}

// sentQueue is a ring of ranges in order of their sequence numbers.
type sentQueue struct {
	buf      []sent     // ring of ranges, whose length is a power of two; nil: no range was ever stored
	transits *[]transit // for a Model, the transit of each element of buf (rate.go); otherwise nil
	head, n  uint32

	// sacked, lost and retrans are the numbers of bytes in ranges with these flags. resend
	// is the number of bytes that wait to be retransmitted.
	sacked, lost, retrans, resend uint32
	sackedSegs                    uint32

	resendFrom Seq // no range before this number waits to be retransmitted
}

func (q *sentQueue) at(i int) *sent { return &q.buf[(q.head+uint32(i))&uint32(len(q.buf)-1)] }
func (q *sentQueue) len() int       { return int(q.n) }

// transit returns the delivery state recorded for range i. It must only be called if the congestion control
// implements Model, as BBR does.
func (q *sentQueue) transit(i int) *transit {
	return &(*q.transits)[(q.head+uint32(i))&uint32(len(q.buf)-1)]
}

func (q *sentQueue) last() *sent { return q.at(int(q.n) - 1) }
func (q *sentQueue) full() bool  { return q.n >= maxSent }

// account adds r to the sums (by = 1) or subtracts it (by = -1).
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

// setFlags changes the flags of a range and updates the sums.
func (q *sentQueue) setFlags(r *sent, set, clear sentFlags) {
	q.account(r, -1)
	r.flags = r.flags&^clear | set
	q.account(r, 1)
}

// push appends a range that has just been sent. If the last range was sent at the same time and consists of whole segments,
// push extends that range instead. An owner that reads the clock once for many segments thus gets a single range.
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

// grow doubles the capacity of the queue, and of the transits if there are any.
func (q *sentQueue) grow() {
	buf := make([]sent, max(4, 2*len(q.buf)))
	for i := range q.len() {
		buf[i] = *q.at(i)
	}
	if q.transits != nil {
		transits := make([]transit, len(buf))
		for i := range q.len() {
			transits[i] = *q.transit(i)
		}
		*q.transits = transits
	}
	q.buf, q.head = buf, 0
}

// pop removes the first range.
func (q *sentQueue) pop() {
	q.account(q.at(0), -1)
	q.head++
	q.n--
}

// trimFront removes the numbers before seq from the first range. seq lies inside that range.
func (q *sentQueue) trimFront(seq Seq) {
	r := q.at(0)
	q.account(r, -1)
	r.seq = seq
	r.countSegments()
	q.account(r, 1)
}

// find returns the index of the first range that ends after seq.
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

// split cuts range i at seq, which lies inside it. It returns false if the queue is full.
func (q *sentQueue) split(i int, seq Seq) bool {
	if q.full() {
		return false
	}
	if int(q.n) == len(q.buf) {
		q.grow()
	}
	q.n++
	for j := q.len() - 1; j > i; j-- {
		q.move(j, j-1)
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

// join merges ranges i and i+1, which the caller knows to be in the same state. The segment counts of sacked
// ranges add up; other ranges are counted again.
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
		q.move(j, j+1)
	}
	q.n--
}

// move copies the range at the index source to the index target.
func (q *sentQueue) move(target, source int) {
	*q.at(target) = *q.at(source)
	if q.transits != nil {
		*q.transit(target) = *q.transit(source)
	}
}

// firstResend returns the index of the first range that waits to be retransmitted, or -1.
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

// release frees the memory. The queue must be empty.
func (q *sentQueue) release() {
	transits := q.transits
	if transits != nil {
		*transits = nil
	}
	*q = sentQueue{transits: transits}
}

// measure starts or stops recording transits.
func (q *sentQueue) measure(on bool) {
	q.transits = nil
	if on {
		transits := make([]transit, len(q.buf))
		q.transits = &transits
	}
}
