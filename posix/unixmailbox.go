package posix

import (
	"sync"
	"syscall"
)

// mailbox holds what has been sent to a Unix socket and not been received. Of a
// connected pair each end has one; a datagram socket has one that everybody may
// put into.
//
// It is a leaf: nothing is called with its lock held but the functions that wait
// for it.
type mailbox struct {
	mu      sync.Mutex
	letters []letter
	size    int   // bytes that letters take, overhead included
	ended   bool  // no more will come
	refused bool  // nobody reads any more
	failure Errno // for the reader, once everything has been read

	reader  *waitQueue              // told when there is something to read
	writers map[*waitQueue]struct{} // those that found no room, told when there is
}

// letter is one write or message. A stream joins the bytes of successive letters
// but never reads beyond one that carries control messages.
type letter struct {
	data    []byte
	from    Address
	control []Control
}

// letterOverhead is counted for each letter beside its bytes.
const letterOverhead = 256

func (l *letter) size() int { return len(l.data) + letterOverhead }

// put adds a letter, and takes over what it carries. A stream letter may be cut
// to the room there is: put returns how many bytes it took. Errors: EAGAIN, EPIPE
// when the reader has gone, EMSGSIZE.
func (m *mailbox) put(l letter, limit int, stream bool, writer *waitQueue) (int, Errno) {
	m.mu.Lock()
	switch room := limit - m.size; {
	case m.refused || m.ended:
		m.mu.Unlock()
		return 0, syscall.EPIPE
	case !stream && len(l.data) > limit:
		m.mu.Unlock()
		return 0, syscall.EMSGSIZE
	case room <= letterOverhead: // as hasRoom says; a message may exceed the limit by itself
		m.wantRoom(writer)
		m.mu.Unlock()
		return 0, syscall.EAGAIN
	case stream && l.size() > room:
		l.data = l.data[:room-letterOverhead]
	}
	l.data = append([]byte(nil), l.data...)
	m.letters = append(m.letters, l)
	m.size += l.size()
	m.mu.Unlock()
	m.reader.tell(PollIn)
	return len(l.data), 0
}

func (m *mailbox) wantRoom(writer *waitQueue) {
	if m.writers == nil {
		m.writers = make(map[*waitQueue]struct{})
	}
	m.writers[writer] = struct{}{}
}

// hasRoom reports whether put would take something, and otherwise has the
// writer told when it would.
func (m *mailbox) hasRoom(limit int, writer *waitQueue) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused || m.ended || limit-m.size > letterOverhead {
		return true
	}
	m.wantRoom(writer)
	return false
}

// takeMessage receives one letter. Errors: EAGAIN; at the end the zero Received,
// or failure once.
func (m *mailbox) takeMessage(b []byte, peek bool) (Received, Errno) {
	m.mu.Lock()
	if len(m.letters) == 0 {
		defer m.mu.Unlock()
		return Received{}, m.empty()
	}
	l := &m.letters[0]
	r := Received{N: copy(b, l.data), Len: len(l.data), From: l.from}
	if peek {
		m.mu.Unlock()
		return r, 0
	}
	r.Control = l.control
	m.shift()
	woken := m.waitingWriters()
	m.mu.Unlock()
	tellAll(woken, PollOut)
	return r, 0
}

// takeStream receives bytes. Errors are takeMessage's.
func (m *mailbox) takeStream(b []byte, peek bool) (Received, Errno) {
	m.mu.Lock()
	if len(m.letters) == 0 {
		defer m.mu.Unlock()
		return Received{}, m.empty()
	}
	var r Received
	for i := 0; r.N < len(b) && i < len(m.letters); {
		l := &m.letters[i]
		if l.control != nil && r.N > 0 {
			break
		}
		n := copy(b[r.N:], l.data)
		r.N += n
		if peek {
			i++
			continue
		}
		carried := l.control
		r.Control, l.control = carried, nil
		l.data = l.data[n:]
		m.size -= n
		if len(l.data) == 0 {
			m.shift()
		}
		if carried != nil {
			break
		}
	}
	var woken map[*waitQueue]struct{}
	if !peek {
		woken = m.waitingWriters()
	}
	m.mu.Unlock()
	r.Len = r.N
	tellAll(woken, PollOut)
	return r, 0
}

// shift removes the first letter.
func (m *mailbox) shift() {
	m.size -= m.letters[0].size()
	m.letters[0] = letter{}
	if m.letters = m.letters[1:]; len(m.letters) == 0 {
		m.letters = nil
	}
}

// waitingWriters takes out those who are to be told of room.
func (m *mailbox) waitingWriters() map[*waitQueue]struct{} {
	writers := m.writers
	m.writers = nil
	return writers
}

// empty is what reading finds when there are no letters.
func (m *mailbox) empty() Errno {
	switch {
	case m.failure != 0:
		errno := m.failure
		m.failure = 0
		return errno
	case m.ended || m.refused:
		return 0
	}
	return syscall.EAGAIN
}

// end says that no more will come: failure, if any, is for the reader, and so is
// the loss of what it has not read.
func (m *mailbox) end(failure Errno) {
	m.mu.Lock()
	m.ended = true
	m.failure = failure
	m.mu.Unlock()
	e := PollIn | PollRdHup
	if failure != 0 {
		e |= PollErr
	}
	m.reader.tell(e)
}

// refuse says that nobody reads any more. It reports whether something was left
// unread.
func (m *mailbox) refuse() (unread bool) {
	m.mu.Lock()
	m.refused = true
	letters, writers := m.letters, m.writers
	m.letters, m.writers, m.size = nil, nil, 0
	m.mu.Unlock()
	for i := range letters {
		for _, c := range letters[i].control {
			dropPassed(c.passed)
		}
	}
	tellAll(writers, PollOut|PollHup)
	return len(letters) > 0
}

// state is what poll needs to know.
func (m *mailbox) state() (readable, ended, refused bool, failure Errno) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.letters) > 0, m.ended, m.refused, m.failure
}

// waiting is how many bytes could be read: all of a stream, the first message of
// others.
func (m *mailbox) waiting(stream bool) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for i := range m.letters {
		n += len(m.letters[i].data)
		if !stream {
			break
		}
	}
	return n
}

// queued is how many bytes of letters are held, overhead included.
func (m *mailbox) queued() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.size
}

func tellAll(queues map[*waitQueue]struct{}, e Events) {
	for q := range queues {
		q.tell(e)
	}
}
