package pipe

import (
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// System holds the pipes of open FIFOs, the limits of pipes, and the lock of calls that use two pipes.
type System struct {
	quotas
	pairs sync.Mutex // held while a call locks two pipes

	mu    sync.Mutex // guards the fields below
	open  map[fs.Node]*pipe
	users map[fs.Node]int
}

// enter returns the pipe of a FIFO, and creates it if the FIFO is not open. leave releases it. Errors: ENFILE.
func (s *System) enter(n fs.Node, inode uint64, who Creator) (*pipe, linux.Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open, s.users = make(map[fs.Node]*pipe), make(map[fs.Node]int)
	}
	if s.open[n] == nil {
		p, errno := s.newPipe(inode, who)
		if errno != 0 {
			return nil, errno
		}
		s.open[n] = p
	}
	s.users[n]++
	return s.open[n], 0
}

func (s *System) leave(n fs.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[n]--; s.users[n] == 0 {
		s.open[n].release()
		delete(s.open, n)
		delete(s.users, n)
	}
}

// OpenFIFO opens a FIFO. In blocking mode it waits for an end of the other kind (fifo(7)). With
// O_NONBLOCK, opening for writing without a reader fails with ENXIO. Errors: ENXIO, EINTR, ENFILE.
func (s *System) OpenFIFO(node fs.Node, flags int, who Creator, task file.Task) (*End, linux.Errno) {
	mode := flags & linux.O_ACCMODE
	does := [2]bool{reads: mode != linux.O_WRONLY, writes: mode != linux.O_RDONLY}
	shared, errno := s.enter(node, node.Attr().Inode, who)
	if errno != 0 {
		return nil, errno
	}
	e := shared.newEnd(does)
	e.node, e.closed = node, func() { s.leave(node) }
	other := writes
	if does[writes] {
		other = reads
	}
	switch {
	case flags&linux.O_NONBLOCK == 0:
		if errno := e.await(other, task); errno != 0 {
			e.Close()
			return nil, errno
		}
	case does[writes] && shared.without(other):
		e.Close()
		return nil, linux.ENXIO
	}
	return e, 0
}

// without reports whether no end of a kind is open.
func (p *pipe) without(kind int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ends[kind] == 0
}

// await waits until an end of the given kind (for reading or for writing) is open, or was opened after e and closed again.
// Errors: EINTR.
func (e *End) await(kind int, task file.Task) linux.Errno {
	if e.met(kind) {
		return 0
	}
	s := file.NewSleeper(&e.q, 0, task)
	defer s.Leave()
	for !e.met(kind) {
		if errno := s.Sleep(); errno != 0 {
			return errno
		}
	}
	return 0
}

// met reports whether await need not wait.
func (e *End) met(kind int) bool {
	p := e.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ends[kind] > 0 || p.since[kind] > e.before[kind]
}
