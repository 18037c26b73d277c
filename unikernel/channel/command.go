package channel

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// Command is the command's end.
type Command struct {
	In          io.Reader
	Out, Errors io.Writer
	Results     io.Writer // nil: they are thrown away
	// Keys is the terminal, for a program that reads it though it is not standard input; nil: there is none.
	Keys io.Reader
	// Together says that Out and Errors lead to the same place: what is written there
	// keeps its order.
	Together bool
	// Before is called before anything is written to Errors or, if that is the same
	// place, to Out: others write there too.
	Before func()
	// Terminal serves an ioctl(2) of a terminal; nil: there is none.
	Terminal func(fd, request int, arg []byte) syscall.Errno

	sending sync.Mutex
	to      io.Writer
}

// pieces are frames of output that wait to be written. Who sends keeps to its
// window, so there is never much.
type pieces struct {
	mu     sync.Mutex
	come   sync.Cond // under mu
	list   []piece
	bytes  int
	closed bool
}

type piece struct {
	kind Kind
	data []byte
}

// weight is what a piece counts for among the bytes of a window.
func (p piece) weight() int { return max(len(p.data), 1) }

func newPieces() *pieces {
	q := &pieces{}
	q.come.L = &q.mu
	return q
}

// put adds a piece. It fails when more is there than two windows have; a piece without
// bytes counts as one.
func (q *pieces) put(p piece) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list, q.bytes = append(q.list, p), q.bytes+p.weight()
	q.come.Signal()
	return q.bytes <= 2*Window
}

// take waits for a piece; false after the last.
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

// close says that no more will come.
func (q *pieces) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.come.Broadcast()
}

// Serve serves the program at the other end of conn until that ends, and returns when
// all that it wrote has been written. A read that is under way then is left to
// itself.
func (c *Command) Serve(conn io.ReadWriter) error {
	c.to = conn
	reads := make(chan int, 1) // sent and closed by Serve, received by read; full: the program asks twice, which it does not
	go c.read(Read, c.In, reads)
	defer close(reads)
	keys := make(chan int, 1) // like reads
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
		if err == io.EOF || errors.Is(err, syscall.ECONNRESET) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// askedFor passes a request to read on.
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

// read reads what is asked for, and answers by frames of a kind.
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

// write writes pieces, each with an answer.
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

func (c *Command) terminal(payload []byte) error {
	r, arg, err := ParseRequest(payload)
	if err != nil {
		return err
	}
	errno := syscall.ENOTTY
	if c.Terminal != nil {
		errno = c.Terminal(int(r.FD), int(r.Number), arg)
	}
	c.answer(Terminal, append(Result{Errno: uint32(errno)}.Append(nil), arg...))
	return nil
}

// answer sends a frame. An error means that the program has ended, which Serve sees.
func (c *Command) answer(k Kind, payload []byte) {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.to.Write(Append(nil, k, payload))
}

func errnoOf(err error) uint32 {
	var errno syscall.Errno
	switch {
	case err == nil || err == io.EOF:
		return 0
	case errors.As(err, &errno):
		return uint32(errno)
	}
	return uint32(syscall.EIO)
}
