package posix

import "loam/fs"

// Opened is an open file description, for who serves the most frequent calls without
// looking the descriptor up twice. One that has been closed meanwhile answers as if the
// call had come before, or with an error.
type Opened = open

// Opened finds an open file, or returns nil. It takes no lock.
func (p *Process) Opened(fd int) *Opened { return p.fds.get(fd) }

// Sink is where writes may go at once, and Source where reads may be made: see
// fs.File.Sink. They are nil for most files.
func (o *open) Sink() fs.Handle   { return o.sink }
func (o *open) Source() fs.Handle { return o.source }

// TakesStack reports whether reads and writes take memory that lies on the stack of who
// calls: it is in the hands of no other goroutine while they wait.
func (o *open) TakesStack() bool {
	_, ok := o.file.(*hostTCP)
	return ok || o.Immediate()
}

// Immediate reports whether reads and writes wait for nobody, and take memory that lies
// on a stack: see fs.Immediate.
func (o *open) Immediate() bool {
	f, ok := o.file.(*treeFile)
	return ok && f.File.Immediate()
}
