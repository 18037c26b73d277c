package posix

import "loam/fs"

// Opened is an open file description. It lets the most frequent calls look the descriptor up only once.
// If the description is closed meanwhile, a call behaves as if it had come before the close, or returns
// an error.
type Opened = open

// Opened returns the description of fd, or nil. It takes no lock.
func (p *Process) Opened(fd int) *Opened { return p.fds.get(fd) }

// Sink returns the handle that writes may use directly, and Source the one for reads: see fs.File.Sink.
// They are nil for most files.
func (o *open) Sink() fs.Handle   { return o.sink }
func (o *open) Source() fs.Handle { return o.source }

// TakesStack reports whether read and write accept memory on the caller's stack. It holds for files
// that never pass the memory to another goroutine while they wait.
func (o *open) TakesStack() bool {
	_, ok := o.file.(*hostTCP)
	return ok || o.Immediate()
}

// Immediate reports whether reads and writes never wait and accept memory on the caller's stack: see
// fs.Immediate.
func (o *open) Immediate() bool {
	f, ok := o.file.(*treeFile)
	return ok && f.File.Immediate()
}
