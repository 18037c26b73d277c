package posix

import (
	"sync"
	"syscall"

	"loam/fs"
)

// Pipes and FIFOs (pipe(7)). A write of at most pipeBuf bytes goes in one piece.
// Writing to a pipe that nobody reads is EPIPE; no SIGPIPE comes with it.

const (
	pipeSize = 65536
	pipeBuf  = 4096
)

// pipe is what two ends share. A FIFO may have more than one end of each kind,
// or none of one while it waits for it.
type pipe struct {
	inode uint64
	mu    sync.Mutex // guards what follows
	ring  []byte     // pipeSize bytes once something was written
	start int        // of what has been written and not read
	held  int        // bytes
	ends  [2]int     // readers and writers that are open
	since [2]uint64  // how many of each have been opened
	// watched holds the queues of the ends, to be told; replaced, never changed.
	watched [2][]*waitQueue
}

// pipeEnd is one end of a pipe; of a FIFO opened with O_RDWR, both.
type pipeEnd struct {
	pipe   *pipe
	does   [2]bool // reads, writes
	q      waitQueue
	node   fs.Node // of a FIFO
	closed func()
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
	p.tell(reads, PollOut)
	p.tell(writes, PollIn)
	return e
}

// tell calls the queues of one kind of ends.
func (p *pipe) tell(kind int, e Events) {
	p.mu.Lock()
	list := p.watched[kind]
	p.mu.Unlock()
	for _, q := range list {
		q.tell(e)
	}
}

func (e *pipeEnd) queue() *waitQueue { return &e.q }
func (e *pipeEnd) mode() uint32      { return syscall.S_IFIFO | 0o600 }

func (e *pipeEnd) stat() Stat {
	if e.node != nil {
		return Stat{Attr: e.node.Attr()}
	}
	return Stat{Attr: fs.Attr{Inode: e.pipe.inode, Mode: fs.Fifo | 0o600, Links: 1, BlockSize: pipeBuf}}
}

func (e *pipeEnd) events() Events {
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

func (e *pipeEnd) read(b []byte) (int, Errno) {
	if !e.does[reads] {
		return 0, syscall.EBADF
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
		return 0, syscall.EAGAIN
	}
	first := copy(b[:n], p.ring[p.start:])
	copy(b[first:n], p.ring)
	p.start = (p.start + n) % pipeSize
	p.held -= n
	p.mu.Unlock()
	p.tell(writes, PollOut)
	return n, 0
}

func (e *pipeEnd) write(b []byte) (int, Errno) {
	p := e.pipe
	if !e.does[writes] {
		return 0, syscall.EBADF
	}
	p.mu.Lock()
	room := pipeSize - p.held
	switch {
	case p.ends[reads] == 0:
		p.mu.Unlock()
		return 0, syscall.EPIPE
	case len(b) == 0:
		p.mu.Unlock()
		return 0, 0
	case room == 0 || len(b) <= pipeBuf && room < len(b):
		p.mu.Unlock()
		return 0, syscall.EAGAIN
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
	p.tell(reads, PollIn)
	return n, 0
}

func (e *pipeEnd) buffered() int {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	return e.pipe.held
}

func (e *pipeEnd) close() {
	p := e.pipe
	p.mu.Lock()
	for i := range e.does {
		if !e.does[i] {
			continue
		}
		p.ends[i]--
		var rest []*waitQueue
		for _, q := range p.watched[i] {
			if q != &e.q {
				rest = append(rest, q)
			}
		}
		p.watched[i] = rest
	}
	p.mu.Unlock()
	if e.does[writes] {
		p.tell(reads, PollIn|PollHup)
	}
	if e.does[reads] {
		p.tell(writes, PollOut|PollErr)
	}
	if e.closed != nil {
		e.closed()
	}
}

// Pipe2 is pipe2(2): the reading end, then the writing one.
func (p *Process) Pipe2(flags int) (fds [2]int, errno Errno) {
	if flags&^(syscall.O_CLOEXEC|syscall.O_NONBLOCK) != 0 {
		return fds, syscall.EINVAL
	}
	shared := &pipe{inode: uint64(p.serial.next())}
	ends := [2]*pipeEnd{shared.newEnd([2]bool{reads: true}), shared.newEnd([2]bool{writes: true})}
	cloexec := flags&syscall.O_CLOEXEC != 0
	flags &= syscall.O_NONBLOCK
	if fds[0], errno = p.installWith(ends[0], flags|syscall.O_RDONLY, cloexec); errno != 0 {
		ends[1].close()
		return fds, errno
	}
	if fds[1], errno = p.installWith(ends[1], flags|syscall.O_WRONLY, cloexec); errno != 0 {
		p.Close(fds[0])
	}
	return fds, errno
}

// fifos are the pipes of the FIFOs that are open.
type fifos struct {
	mu    sync.Mutex
	open  map[fs.Node]*pipe
	users map[fs.Node]int
}

// enter finds the pipe of a FIFO, or makes it, until leave.
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

// openFIFO opens a FIFO, and in blocking mode waits for an end of the other
// kind (fifo(7)). With O_NONBLOCK a writer that nobody reads is ENXIO.
func (p *Process) openFIFO(node fs.Node, flags int) (int, Errno) {
	mode := flags & syscall.O_ACCMODE
	does := [2]bool{reads: mode != syscall.O_WRONLY, writes: mode != syscall.O_RDONLY}
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
	case flags&syscall.O_NONBLOCK == 0:
		shared.await(e, other)
	case does[writes] && alone():
		e.close()
		return -1, syscall.ENXIO
	}
	return p.installWith(e, flags&statusFlags, flags&syscall.O_CLOEXEC != 0)
}

// await waits until an end of a kind has been opened, even if it is closed again.
func (p *pipe) await(e *pipeEnd, kind int) {
	p.mu.Lock()
	seen := p.since[kind]
	there := p.ends[kind] > 0
	p.mu.Unlock()
	if there {
		return
	}
	s := newSleeper(&e.q, 0)
	defer s.leave()
	for {
		p.mu.Lock()
		came := p.since[kind] > seen
		p.mu.Unlock()
		if came {
			return
		}
		s.sleep()
	}
}
