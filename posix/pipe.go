package posix

import (
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Pipes and FIFOs (pipe(7)). A write of at most pipeBuf bytes is atomic. A write to a pipe without
// readers fails with EPIPE and raises no SIGPIPE.

const (
	pipeSize = 65536
	pipeBuf  = 4096
)

// pipe is the buffer that the two ends share. A FIFO may have several ends of each kind, or only one
// end while it waits for the other.
type pipe struct {
	inode uint64
	mu    sync.Mutex // guards the fields below
	ring  []byte     // pipeSize bytes, allocated by the first write
	start int        // offset of the oldest unread byte
	held  int        // unread bytes
	ends  [2]int     // open readers and writers
	since [2]uint64  // readers and writers ever opened
	// watched holds the wait queues of the ends. Slices are replaced, never modified.
	watched [2][]*file.Queue
}

// pipeEnd is one end of a pipe. A FIFO opened with O_RDWR is both ends.
type pipeEnd struct {
	pipe   *pipe
	does   [2]bool // reads, writes
	q      file.Queue
	node   fs.Node // node of the FIFO; nil for a pipe
	closed func()  // called after close; nil for a pipe
}

const (
	reads = iota
	writes
)

// newEnd opens an end.
func (p *pipe) newEnd(does [2]bool) *pipeEnd {
	e := &pipeEnd{pipe: p, does: does}
	p.mu.Lock()
	for i := range does {
		if does[i] {
			p.ends[i]++
			p.since[i]++
			p.watched[i] = append(p.watched[i][:len(p.watched[i]):len(p.watched[i])], &e.q)
		}
	}
	p.mu.Unlock()
	p.notify(reads, PollOut)
	p.notify(writes, PollIn)
	return e
}

// notify reports events to all ends of one kind.
func (p *pipe) notify(kind int, e Events) {
	p.mu.Lock()
	list := p.watched[kind]
	p.mu.Unlock()
	for _, q := range list {
		q.Notify(e)
	}
}

func (e *pipeEnd) Queue() *file.Queue { return &e.q }
func (e *pipeEnd) Mode() uint32       { return linux.S_IFIFO | 0o600 }

func (e *pipeEnd) stat() Stat {
	if e.node != nil {
		return Stat{Attr: e.node.Attr()}
	}
	return Stat{Attr: fs.Attr{Inode: e.pipe.inode, Mode: fs.Fifo | 0o600, Links: 1, BlockSize: pipeBuf}}
}

// Events implements file. A FIFO without a writer reports a hangup only if it has had one before.
func (e *pipeEnd) Events() Events {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	var ev Events
	if e.does[reads] {
		if p.held > 0 {
			ev |= PollIn
		}
		if p.ends[writes] == 0 && p.since[writes] > 0 {
			ev |= PollHup
		}
	}
	if e.does[writes] {
		if pipeSize-p.held >= pipeBuf {
			ev |= PollOut
		}
		if p.ends[reads] == 0 {
			ev |= PollErr
		}
	}
	return ev
}

// Read implements file. It returns 0 at the end: no data and no writer.
func (e *pipeEnd) Read(b []byte) (int, Errno) {
	if !e.does[reads] {
		return 0, linux.EBADF
	}
	if len(b) == 0 {
		return 0, 0
	}
	p := e.pipe
	p.mu.Lock()
	n := min(len(b), p.held)
	if n == 0 {
		defer p.mu.Unlock()
		if p.ends[writes] == 0 {
			return 0, 0
		}
		return 0, linux.EAGAIN
	}
	first := copy(b[:n], p.ring[p.start:])
	copy(b[first:n], p.ring)
	p.start = (p.start + n) % pipeSize
	p.held -= n
	p.mu.Unlock()
	p.notify(writes, PollOut)
	return n, 0
}

// Write implements file. It writes at most pipeBuf bytes whole or not at all, and more bytes as far as
// there is room.
func (e *pipeEnd) Write(b []byte) (int, Errno) {
	p := e.pipe
	if !e.does[writes] {
		return 0, linux.EBADF
	}
	p.mu.Lock()
	room := pipeSize - p.held
	switch {
	case p.ends[reads] == 0:
		p.mu.Unlock()
		return 0, linux.EPIPE
	case len(b) == 0:
		p.mu.Unlock()
		return 0, 0
	case room == 0 || len(b) <= pipeBuf && room < len(b):
		p.mu.Unlock()
		return 0, linux.EAGAIN
	}
	if p.ring == nil {
		p.ring = make([]byte, pipeSize)
	}
	n := min(len(b), room)
	end := (p.start + p.held) % pipeSize
	first := copy(p.ring[end:], b[:n])
	copy(p.ring, b[first:n])
	p.held += n
	p.mu.Unlock()
	p.notify(reads, PollIn)
	return n, 0
}

func (e *pipeEnd) Buffered() int {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	return e.pipe.held
}

// Close removes the end from the pipe and notifies the ends of the other kind.
func (e *pipeEnd) Close() {
	p := e.pipe
	p.mu.Lock()
	for i := range e.does {
		if !e.does[i] {
			continue
		}
		p.ends[i]--
		var rest []*file.Queue
		for _, q := range p.watched[i] {
			if q != &e.q {
				rest = append(rest, q)
			}
		}
		p.watched[i] = rest
	}
	p.mu.Unlock()
	if e.does[writes] {
		p.notify(reads, PollIn|PollHup)
	}
	if e.does[reads] {
		p.notify(writes, PollOut|PollErr)
	}
	if e.closed != nil {
		e.closed()
	}
}

// Pipe2 implements pipe2(2). It returns the read end and the write end, in this order. Errors: EINVAL,
// EMFILE.
func (p *Process) Pipe2(flags int) (fds [2]int, errno Errno) {
	if flags&^(linux.O_CLOEXEC|linux.O_NONBLOCK) != 0 {
		return fds, linux.EINVAL
	}
	shared := &pipe{inode: uint64(p.serial.Next())}
	ends := [2]*pipeEnd{shared.newEnd([2]bool{reads: true}), shared.newEnd([2]bool{writes: true})}
	cloexec := flags&linux.O_CLOEXEC != 0
	flags &= linux.O_NONBLOCK
	if fds[0], errno = p.installWith(ends[0], flags|linux.O_RDONLY, cloexec); errno != 0 {
		ends[1].Close()
		return fds, errno
	}
	if fds[1], errno = p.installWith(ends[1], flags|linux.O_WRONLY, cloexec); errno != 0 {
		p.Close(fds[0])
	}
	return fds, errno
}

// fifos holds the pipes of open FIFOs.
type fifos struct {
	mu    sync.Mutex
	open  map[fs.Node]*pipe
	users map[fs.Node]int
}

// enter returns the pipe of a FIFO and creates it if necessary. leave releases it.
func (f *fifos) enter(n fs.Node, inode uint64) *pipe {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open, f.users = make(map[fs.Node]*pipe), make(map[fs.Node]int)
	}
	if f.open[n] == nil {
		f.open[n] = &pipe{inode: inode}
	}
	f.users[n]++
	return f.open[n]
}

func (f *fifos) leave(n fs.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users[n]--; f.users[n] == 0 {
		delete(f.open, n)
		delete(f.users, n)
	}
}

// openFIFO opens a FIFO. In blocking mode it waits for an end of the other kind (fifo(7)). With
// O_NONBLOCK, opening for writing without a reader fails with ENXIO.
func (p *Process) openFIFO(node fs.Node, flags int) (int, Errno) {
	mode := flags & linux.O_ACCMODE
	does := [2]bool{reads: mode != linux.O_WRONLY, writes: mode != linux.O_RDONLY}
	shared := p.fifos.enter(node, node.Attr().Inode)
	e := shared.newEnd(does)
	e.node, e.closed = node, func() { p.fifos.leave(node) }
	other := writes
	if does[writes] {
		other = reads
	}
	alone := func() bool {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		return shared.ends[other] == 0
	}
	switch {
	case flags&linux.O_NONBLOCK == 0:
		if errno := p.await(shared, e, other); errno != 0 {
			e.Close()
			return -1, errno
		}
	case does[writes] && alone():
		e.Close()
		return -1, linux.ENXIO
	}
	return p.installWith(e, flags&statusFlags, flags&linux.O_CLOEXEC != 0)
}

// await waits until an end of a kind is open, or has been opened and closed in the meantime. Errors: EINTR.
func (p *Process) await(shared *pipe, e *pipeEnd, kind int) Errno {
	shared.mu.Lock()
	seen := shared.since[kind]
	there := shared.ends[kind] > 0
	shared.mu.Unlock()
	if there {
		return 0
	}
	s := p.newSleeper(&e.q, 0)
	defer s.Leave()
	for {
		shared.mu.Lock()
		came := shared.since[kind] > seen
		shared.mu.Unlock()
		if came {
			return 0
		}
		if errno := s.Sleep(); errno != 0 {
			return errno
		}
	}
}

// Asynchronous implements file.Asynchronous.
func (e *pipeEnd) Asynchronous() {}
