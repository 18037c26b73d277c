package posix

import "loam/posix/file"

// Opened is an open file description. It lets the most frequent calls look the descriptor up only once.
// If the description is closed meanwhile, a call behaves as if it had come before the close, or returns
// an error.
type Opened = file.Description

// Opened returns the description of fd, or nil. It takes no lock.
func (p *Process) Opened(fd int) *Opened { return p.fds.Get(fd) }
