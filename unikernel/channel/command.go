package channel

import (
	"errors"
	"io"
	"sync"

	"loam/abi/linux"
)

// Command is the loam command's end of the channel.
type Command struct {
	In          io.Reader
	Out, Errors io.Writer
	Results     io.Writer // receives the archive of files; nil: the archive is discarded
	// Keys is the terminal, for a program whose standard input is not the terminal; nil: none.
	Keys io.Reader
	// Together reports that Out and Errors are the same file. Output to them then keeps its order.
	Together bool
	// Before is called before each write to Errors and, if Together is set, to Out. Other writers use the
	// same file, and Before lets them write first.
	Before func()
	// Terminal serves an ioctl(2) on a terminal; nil: no terminal.
	Terminal func(fd, request int, arg []byte) linux.Errno

	sending sync.Mutex
	to      io.Writer
}

// pieces is a queue of output frames to write. The sender keeps to its window, so the queue is short.
type pieces struct {
	mu     sync.Mutex
	come   sync.Cond // signals that the queue has changed; guarded by mu
	list   []piece
	bytes  int
	closed bool
}

// piece is the payload of one output frame, with its kind.
type piece struct {
	kind Kind
	data []byte
}

// weight returns the number of window bytes that a piece counts for. An empty piece counts as one.
func (p piece) weight() int { return max(len(p.data), 1) }

// newPieces returns an empty queue.
func newPieces() *pieces {
	q := &pieces{}
	q.come.L = &q.mu
	return q
}

// put adds a piece to the queue. It returns false if the queue then has more than two windows of bytes, which
// a correct sender never causes.
func (q *pieces) put(p piece) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list, q.bytes = append(q.list, p), q.bytes+p.weight()
	q.come.Signal()
	return q.bytes <= 2*Window
}

// take waits for a piece. It returns false after the last one.
func (q *pieces) take() (piece, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 {
		if q.closed {
			return piece{}, false
		}
		q.come.Wait()
	}
	p := q.list[0]
	q.list, q.bytes = q.list[1:], q.bytes-p.weight()
	return p, true
}

// close marks the end of the queue.
func (q *pieces) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.come.Broadcast()
}

// Serve serves the program at the other end of conn until that end closes, and returns when all output has
// been written. A read from In or Keys that is blocked at that time is abandoned.
func (c *Command) Serve(conn io.ReadWriter) error {
	c.to = conn
	// Serve sends and closes, read receives; if it is full, the program has sent a second request before the answer, which
	// is a protocol error
	reads := make(chan int, 1)
	go c.read(Read, c.In, reads)
	defer close(reads)
	keys := make(chan int, 1) // used for Keys requests in the same way as reads
	go c.read(Keys, c.Keys, keys)
	defer close(keys)
	out := newPieces()
	queues := [...]*pieces{Output: out, Errors: out, Results: newPieces()}
	if !c.Together {
		queues[Errors] = newPieces()
	}
	var writing sync.WaitGroup
	defer writing.Wait()
	for k, q := range queues {
		if q != nil && (Kind(k) != Errors || !c.Together) {
			writing.Add(1)
			go func() {
				defer writing.Done()
				c.write(q)
			}()
			defer q.close()
		}
	}
	room := make([]byte, MaxPayload)
	for {
		k, payload, err := Next(conn, room)
		if err == nil {
			switch k {
			case Read:
				err = askedFor(reads, payload)
			case Keys:
				err = askedFor(keys, payload)
			case Terminal:
				err = c.terminal(payload)
			default:
				if !queues[k].put(piece{k, append([]byte(nil), payload...)}) {
					err = ErrFrame
				}
			}
		}
		if err == io.EOF || errors.Is(err, linux.ECONNRESET) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// askedFor passes the size in a read request to the reading goroutine. It fails if an earlier request is still waiting.
func askedFor(reads chan<- int, payload []byte) error {
	r, _, err := ParseResult(payload)
	if err != nil {
		return err
	}
	select {
	case reads <- int(min(r.Count, MaxPayload-ResultLen)):
		return nil
	default:
		return ErrFrame
	}
}

// read serves read requests from a reader, and answers with frames of kind k.
func (c *Command) read(k Kind, from io.Reader, reads <-chan int) {
	room := make([]byte, MaxPayload-ResultLen)
	for most := range reads {
		n, err := 0, io.EOF
		if from != nil {
			n, err = from.Read(room[:most])
		}
		r := Result{Count: uint32(n)}
		if n == 0 {
			r.Errno = errnoOf(err)
		}
		c.answer(k, append(r.Append(nil), room[:n]...))
	}
}

// write writes the pieces of a queue to Out or Errors, and answers each.
func (c *Command) write(q *pieces) {
	for {
		p, ok := q.take()
		if !ok {
			return
		}
		to := [...]io.Writer{Output: c.Out, Errors: c.Errors, Results: c.Results}[p.kind]
		if to == nil {
			to = io.Discard
		}
		if c.Before != nil && (p.kind == Errors || p.kind == Output && c.Together) {
			c.Before()
		}
		_, err := to.Write(p.data)
		c.answer(p.kind, Result{errnoOf(err), uint32(len(p.data))}.Append(nil))
	}
}

// terminal serves a Terminal request and answers it.
func (c *Command) terminal(payload []byte) error {
	r, arg, err := ParseRequest(payload)
	if err != nil {
		return err
	}
	errno := linux.ENOTTY
	if c.Terminal != nil {
		errno = c.Terminal(int(r.FD), int(r.Number), arg)
	}
	c.answer(Terminal, append(Result{Errno: uint32(errno)}.Append(nil), arg...))
	return nil
}

// answer sends a frame to the program. It ignores errors: they mean that the program has ended, and Serve
// detects that itself.
func (c *Command) answer(k Kind, payload []byte) {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.to.Write(Append(nil, k, payload))
}

// errnoOf returns the Linux errno for an error: 0 for end of file, EIO for errors without an errno.
func errnoOf(err error) uint32 {
	var errno linux.Errno
	switch {
	case err == nil || err == io.EOF:
		return 0
	case errors.As(err, &errno):
		return uint32(errno)
	}
	return uint32(linux.EIO)
}
