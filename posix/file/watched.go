package file

import "sync"

// Watched is a process that can be named by a pidfd.
type Watched interface {
	PID() int
	// Ended reports whether the process has ended.
	Ended() bool
	// AddWatch registers a watch that is notified once, at the end of the process. After the end, AddWatch has no effect.
	// RemoveWatch ends the registration.
	AddWatch(w *Watch)
	RemoveWatch(w *Watch)
}

// ProcessRef is a Watched. Pidfds, sockets and queued messages may keep it for longer than the process exists, so it has no pointer
// to the process.
type ProcessRef struct {
	pid  int
	done chan struct{} // closed at the end of the process

	mu      sync.Mutex
	watches map[*Watch]struct{} // nil before the first watch, and after the end
}

// NewProcessRef returns a reference to a process with an ID.
func NewProcessRef(pid int) *ProcessRef {
	return &ProcessRef{pid: pid, done: make(chan struct{})}
}

// PID implements Watched.
func (r *ProcessRef) PID() int { return r.pid }

// Done returns a channel that is closed when the process has ended.
func (r *ProcessRef) Done() <-chan struct{} { return r.done }

// Ended implements Watched.
func (r *ProcessRef) Ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// End records the end of the process, and notifies the watches.
func (r *ProcessRef) End() {
	r.mu.Lock()
	close(r.done)
	watches := r.watches
	r.watches = nil
	r.mu.Unlock()
	for w := range watches {
		w.Notify(PollIn)
	}
}

// AddWatch implements Watched.
func (r *ProcessRef) AddWatch(w *Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Ended() {
		return
	}
	if r.watches == nil {
		r.watches = map[*Watch]struct{}{}
	}
	r.watches[w] = struct{}{}
}

// RemoveWatch implements Watched.
func (r *ProcessRef) RemoveWatch(w *Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watches, w)
}
