package ring

import "sync"

// Loans: memory in which bytes have arrived, kept until the program has read it instead of copied into
// chunks. Copying is most of the cost of receiving a stream in large frames, so a frame that is mostly
// payload is worth keeping. Only bytes in order are lent. Loans therefore follow one another before
// the offset committed, with chunks between them for small segments.

// Memory is memory that a queue borrows. Free is called once: by the reading goroutine when the bytes have been
// read, or by Reset.
type Memory interface{ Free() }

// loan holds the bytes [from, to) of the stream.
type loan struct {
	from, to uint64
	p        []byte
	of       Memory
}

// maxLoans limits the frames that a slow reader can keep from the frame pool, to 2 MiB. Further bytes are
// copied.
const maxLoans = 32

// loans is a queue of loans. It is pooled, so that an idle connection has none.
type loans struct {
	item    [maxLoans]loan
	head, n uint32
}

var loanQueues = sync.Pool{New: func() any { return new(loans) }}

func (l *loans) at(i uint32) *loan { return &l.item[(l.head+i)%maxLoans] }

// Lend appends p to the committed bytes without copying it: it has the effect of WriteAt and Commit. p
// is a part of a Memory, which belongs to the queue if Lend returns true. Lend returns false and does
// nothing if the offset off is not the end of the committed bytes, if p is empty, if maxLoans is
// reached, or after Reset. Only the shard calls it.
func (q *Receive) Lend(p []byte, off uint64, memory Memory) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dead || off != q.committed.Load() || len(p) == 0 {
		return false
	}
	if q.lent == nil {
		q.lent = loanQueues.Get().(*loans)
	}
	l := q.lent
	if l.n == maxLoans {
		return false
	}
	*l.at(l.n) = loan{off, off + uint64(len(p)), p, memory}
	l.n++
	q.top = max(q.top, off+uint64(len(p)))
	return true
}

// borrowed returns the bytes of a loan that begin at the offset from, up to the offset to
// at most. If the offset from is in no loan, the result next is the start of the next
// loan; if no loan starts before the offset to, next is that offset.
func (q *Receive) borrowed(from, to uint64) (p []byte, next uint64) {
	if q.lent == nil {
		return nil, to
	}
	for i := range q.lent.n {
		switch l := q.lent.at(i); {
		case l.to <= from:
		case l.from <= from:
			return l.p[from-l.from : min(to, l.to)-l.from], to
		default:
			return nil, min(to, l.from)
		}
	}
	return nil, to
}

// giveBack frees the loans whose bytes are all before the offset off.
func (q *Receive) giveBack(off uint64) {
	l := q.lent
	if l == nil {
		return
	}
	for l.n > 0 && l.at(0).to <= off {
		l.at(0).of.Free()
		*l.at(0) = loan{}
		l.head, l.n = (l.head+1)%maxLoans, l.n-1
	}
	if l.n == 0 {
		loanQueues.Put(l)
		q.lent = nil
	}
}
