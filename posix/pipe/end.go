// Package pipe implements pipes, FIFOs (pipe(7), fifo(7)) and the calls that move bytes between files through pipes (splice(2)).
// It does not depend on processes: a call that waits gets its task as a file.Task.
//
// A write of at most Atomic bytes is atomic. A write to a pipe without readers fails with EPIPE and raises no SIGPIPE.
//
// end.go has the two ends of a pipe, pages.go the buffer between them, fifo.go the FIFOs, and splice.go the calls on two files.
package pipe

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Sizes of pipes in bytes (pipe(7)).
const (
	Size   = 16 * pageSize // capacity of a new pipe
	Atomic = pageSize      // PIPE_BUF
)

// pipe is the buffer that the two ends share. A FIFO may have several ends of each kind, or only one
// end while it waits for the other.
type pipe struct {
	inode uint64
	mu    sync.Mutex // guards the fields below
	pages
	ends  [2]int    // number of open readers and of open writers
	since [2]uint64 // number of readers and of writers that were ever opened
	// watched holds the wait queues of the readers and of the writers. A change replaces a slice.
	watched [2][]*file.Queue

	quotas *quotas // where the capacity is charged; nil: not any more
	uid    uint32  // the user to whom it is charged
}

// End is one end of a pipe. A FIFO opened with O_RDWR is the read end and the write end at once.
type End struct {
	pipe *pipe
	does [2]bool // whether the end reads, and whether it writes
	q    file.Queue
	// packets is set while the end has O_DIRECT: a write of up to a page is then a packet, which one read takes.
	packets atomic.Bool
	before  [2]uint64 // pipe.since when the end was opened
	node    fs.Node   // node of the FIFO; nil for a pipe
	closed  func()    // called after the end is closed; nil for a pipe
}

const (
	reads = iota
	writes
)

// New returns the read end and the write end of a new pipe with an inode number. Errors: ENFILE.
func (s *System) New(inode uint64, who Creator) (reader, writer *End, errno linux.Errno) {
	shared, errno := s.newPipe(inode, who)
	if errno != 0 {
		return nil, nil, errno
	}
	reader, writer = shared.newEnd([2]bool{reads: true}), shared.newEnd([2]bool{writes: true})
	reader.closed, writer.closed = shared.release, shared.release
	return reader, writer, 0
}

// newPipe returns a pipe without ends, whose capacity is charged to its creator. Errors: ENFILE.
func (s *System) newPipe(inode uint64, who Creator) (*pipe, linux.Errno) {
	n, errno := s.begin(who)
	return &pipe{inode: inode, pages: pages{capacity: n}, quotas: &s.quotas, uid: who.UID}, errno
}

// newEnd opens an end.
func (p *pipe) newEnd(does [2]bool) *End {
	e := &End{pipe: p, does: does}
	p.mu.Lock()
	for i := range does {
		if does[i] {
			p.ends[i]++
			p.since[i]++
			p.watched[i] = append(p.watched[i][:len(p.watched[i]):len(p.watched[i])], &e.q)
		}
	}
	e.before = p.since
	p.mu.Unlock()
	p.notify(reads, file.PollOut)
	p.notify(writes, file.PollIn)
	return e
}

// notify reports events to all ends of one kind.
func (p *pipe) notify(kind int, e file.Events) {
	p.mu.Lock()
	list := p.watched[kind]
	p.mu.Unlock()
	for _, q := range list {
		q.Notify(e)
	}
}

// owned reports whether a write end has an owner, which gets a signal for each read. The caller holds mu.
func (p *pipe) owned() bool { return slices.ContainsFunc(p.watched[writes], (*file.Queue).Owned) }

func (e *End) Queue() *file.Queue { return &e.q }
func (e *End) Mode() uint32       { return linux.S_IFIFO | 0o600 }

// Stat implements file.Described.
func (e *End) Stat() file.Stat {
	if e.node != nil {
		return file.Stat{Attr: e.node.Attr()}
	}
	return file.Stat{Attr: fs.Attr{Inode: e.pipe.inode, Mode: fs.Fifo | 0o600, Links: 1, BlockSize: Atomic}}
}

// Events implements file.File. A FIFO without a writer reports a hangup only if it has had one before.
func (e *End) Events() file.Events {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	var ev file.Events
	if e.does[reads] {
		if p.held > 0 {
			ev |= file.PollIn
		}
		if p.ends[writes] == 0 && p.since[writes] > 0 {
			ev |= file.PollHup
		}
	}
	if e.does[writes] {
		if !p.full() {
			ev |= file.PollOut
		}
		if p.ends[reads] == 0 {
			ev |= file.PollErr
		}
	}
	return ev
}

// Read implements file.File. It returns 0 at the end: no data and no writer.
func (e *End) Read(b []byte) (int, linux.Errno) {
	if !e.does[reads] {
		return 0, linux.EBADF
	}
	if len(b) == 0 {
		return 0, 0
	}
	p := e.pipe
	p.mu.Lock()
	if p.held == 0 {
		defer p.mu.Unlock()
		if p.ends[writes] == 0 {
			return 0, 0
		}
		return 0, linux.EAGAIN
	}
	full, owned := p.full(), p.owned()
	n := p.read(b)
	freed := full && !p.full()
	p.mu.Unlock()
	if freed || owned {
		p.notify(writes, file.PollOut)
	}
	return n, 0
}

// Write implements file.File. It writes up to Atomic bytes completely or not at all. If b is longer, it writes as many bytes
// as there is room for.
func (e *End) Write(b []byte) (int, linux.Errno) { return e.store(b, false) }

// store stores bytes of b and notifies the readers. With insert, it uses only new pages: see Insert. Errors: EBADF, EPIPE, EAGAIN
// if there is no room.
func (e *End) store(b []byte, insert bool) (n int, errno linux.Errno) {
	p := e.pipe
	switch {
	case !e.does[writes]:
		return 0, linux.EBADF
	case len(b) == 0: // a write of no bytes succeeds even without readers
		return 0, 0
	}
	p.mu.Lock()
	if p.ends[reads] == 0 {
		p.mu.Unlock()
		return 0, linux.EPIPE
	}
	if insert {
		n = p.insert(b)
	} else {
		n = p.write(b, e.packets.Load())
	}
	p.mu.Unlock()
	if n == 0 {
		return 0, linux.EAGAIN
	}
	p.notify(reads, file.PollIn)
	return n, 0
}

func (e *End) Buffered() int {
	e.pipe.mu.Lock()
	defer e.pipe.mu.Unlock()
	return e.pipe.held
}

// Held implements file.Holder: each end counts with half of the pipe. While splice(2) holds the pipe, perhaps for a slow file of the host, the
// pipe counts with its default size: the thread that frees memory must not wait for it.
func (e *End) Held() int64 {
	if !e.pipe.mu.TryLock() {
		return Size / 2
	}
	defer e.pipe.mu.Unlock()
	return int64(len(e.pipe.memory)) / 2
}

// Close removes the end from the pipe and notifies the ends of the other kind.
func (e *End) Close() {
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
		p.notify(reads, file.PollIn|file.PollHup)
	}
	if e.does[reads] {
		p.notify(writes, file.PollOut|file.PollErr)
	}
	if e.closed != nil {
		e.closed()
	}
}

// Name implements file.Named.
func (e *End) Name() string { return fmt.Sprintf("pipe:[%d]", e.pipe.inode) }

// Reads reports whether this is a read end, and Writes whether it is a write end.
func (e *End) Reads() bool  { return e.does[reads] }
func (e *End) Writes() bool { return e.does[writes] }

// SetFlags implements F_SETFL.
func (e *End) SetFlags(f fs.Flags) { e.packets.Store(f&fs.Direct != 0) }

// Asynchronous implements file.Asynchronous.
func (e *End) Asynchronous() {}
