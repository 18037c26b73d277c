package rt

import (
	"sync"

	"loam/posix"
)

// reports writes messages of file systems to standard error. It bypasses the program's descriptors for two reasons. A
// file system reports while it holds its locks, and the program may have redirected descriptor 2 to a file of that same
// file system.
type reports struct {
	// texts carries messages. File systems send without waiting, and drop the message if it is full; loop
	// receives; close closes it.
	texts chan string
	ended chan struct{} // loop closes it when all messages are written

	mu     sync.Mutex // guards closed; held while a message is sent
	closed bool
}

// mostReports is the number of messages that can be queued.
const mostReports = 16

// diskReports receives the messages of the program's disks. It is set before they are opened.
var diskReports *reports

func newReports(to posix.Stream) *reports {
	r := &reports{texts: make(chan string, mostReports), ended: make(chan struct{})}
	go r.loop(to)
	return r
}

func (r *reports) loop(to posix.Stream) {
	defer close(r.ended)
	for text := range r.texts {
		if to != nil {
			to.Write([]byte("loam: " + text + "\n"))
		}
	}
}

// report queues a message for loop, or drops it if mostReports messages are queued already.
func (r *reports) report(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	select {
	case r.texts <- text:
	default:
	}
}

// close waits until all messages are written.
func (r *reports) close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.texts)
	}
	r.mu.Unlock()
	<-r.ended
}
