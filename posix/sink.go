package posix

import "syscall"

// SinkPath is where a sink is found.
const SinkPath = "/dev/loam/null"

// sink is /dev/null, but Loam's own: writing to it measures what a system call
// costs before it does any work.
type sink struct{ q waitQueue }

func (s *sink) events() Events              { return PollIn | PollOut }
func (s *sink) queue() *waitQueue           { return &s.q }
func (s *sink) read(b []byte) (int, Errno)  { return 0, 0 }
func (s *sink) write(b []byte) (int, Errno) { return len(b), 0 }
func (s *sink) close()                      {}
func (s *sink) mode() uint32                { return syscall.S_IFCHR | 0o666 }

// OpenSink opens a sink.
func (p *Process) OpenSink(flags int) (int, Errno) { return p.install(&sink{}, flags) }
