package ring

import "sync"

// Loans: memory that bytes have arrived in, kept until the program has read it, in
// place of a copy into chunks. Copying is most of what receiving a stream in large
// frames costs, so a frame that is mostly payload is worth keeping. Only bytes that
// come in order are lent, so loans lie one behind the other in front of committed,
// with chunks between them where small segments came.

// Memory is a piece of memory that is given back when its bytes have been read, by
// the goroutine that reads.
type Memory interface{ Free() }

// loan is the bytes [from, to).
type loan struct {
	from, to uint64
	p        []byte
	of       Memory
}

// maxLoans bounds what a program that does not read keeps away from the pool of
// frames: 2 MiB of them. What comes beyond it is copied.
const maxLoans = 32

// loans is a queue of them, pooled, so that an idle connection has none.
type loans struct {
	item    [maxLoans]loan
	head, n uint32
}

var loanQueues = sync.Pool{New: func() any { return new(loans) }}

func (l *loans) at(i uint32) *loan { return &l.item[(l.head+i)%maxLoans] }

// Lend is WriteAt and Commit of p without a copy: p is part of of, which belongs to
// the queue if Lend is true. It is false, and nothing has happened, unless off is
// where what was committed ends, and if too much is lent already. Only the shard
// calls it.
func (q *Receive) Lend(p []byte, off uint64, of Memory) bool {
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
	*l.at(l.n) = loan{off, off + uint64(len(p)), p, of}
	l.n++
	q.top = max(q.top, off+uint64(len(p)))
	return true
}

// borrowed is what is lent of [from, to), if it begins so; else where the next loan
// begins, which is at most to.
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

// giveBack gives back what is lent in front of off.
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
