package posix

import (
	"sync"

	"loam/abi/linux"
	"loam/posix/file"
)

// mailbox is a queue of data sent to a Unix socket and not yet received. In a connected pair each end
// has one. A datagram socket has one mailbox for all senders.
//
// Its lock is a leaf: no function is called with it held.
type mailbox struct {
	mu      sync.Mutex
	letters []letter // oldest first
	size    int      // bytes of the letters, overhead included
	ended   bool     // the sender has closed: no more letters will arrive
	refused bool     // the reader has closed
	failure Errno    // returned to the reader after the last letter

	reader  *file.Queue              // notified when a letter arrives
	writers map[*file.Queue]struct{} // senders that found no room; notified when there is
}

// letter is one write or message. A stream read joins the data of successive letters, but does not
// continue past a letter with control messages.
type letter struct {
	data    []byte
	from    Address   // the sender, if it is a bound datagram socket
	control []Control // only messages with descriptors
}

// letterOverhead is the size accounted for each letter in addition to its data, in bytes.
const letterOverhead = 256

func (l *letter) size() int { return len(l.data) + letterOverhead }

// put queues a letter, with a copy of its data, and takes over its descriptors. With stream, the data
// may be truncated to the available room. It returns the number of bytes accepted. Errors: EAGAIN;
// EPIPE if the reader has closed; EMSGSIZE.
func (m *mailbox) put(l letter, limit int, stream bool, writer *file.Queue) (int, Errno) {
	m.mu.Lock()
	switch room := limit - m.size; {
	case m.refused || m.ended:
		m.mu.Unlock()
		return 0, linux.EPIPE
	case !stream && len(l.data) > limit:
		m.mu.Unlock()
		return 0, linux.EMSGSIZE
	case room <= letterOverhead: // same condition as in hasRoom; one message may exceed the limit
		m.wantRoom(writer)
		m.mu.Unlock()
		return 0, linux.EAGAIN
	case stream && l.size() > room:
		l.data = l.data[:room-letterOverhead]
	}
	l.data = append([]byte(nil), l.data...)
	m.letters = append(m.letters, l)
	m.size += l.size()
	m.mu.Unlock()
	m.reader.Notify(PollIn)
	return len(l.data), 0
}

func (m *mailbox) wantRoom(writer *file.Queue) {
	if m.writers == nil {
		m.writers = make(map[*file.Queue]struct{})
	}
	m.writers[writer] = struct{}{}
}

// hasRoom reports whether put would accept a letter. Otherwise it registers the writer to be notified.
func (m *mailbox) hasRoom(limit int, writer *file.Queue) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused || m.ended || limit-m.size > letterOverhead {
		return true
	}
	m.wantRoom(writer)
	return false
}

// takeMessage receives one letter. At the end of the data it returns the zero Received. Errors: EAGAIN;
// failure, once.
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

// takeStream receives bytes. Errors: those of takeMessage.
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
	var woken map[*file.Queue]struct{}
	if !peek {
		woken = m.waitingWriters()
	}
	m.mu.Unlock()
	r.Len = r.N
	tellAll(woken, PollOut)
	return r, 0
}

// shift removes the first letter. The caller holds mu.
func (m *mailbox) shift() {
	m.size -= m.letters[0].size()
	m.letters[0] = letter{}
	if m.letters = m.letters[1:]; len(m.letters) == 0 {
		m.letters = nil
	}
}

// waitingWriters returns the writers to notify and clears the set. The caller holds mu.
func (m *mailbox) waitingWriters() map[*file.Queue]struct{} {
	writers := m.writers
	m.writers = nil
	return writers
}

// empty returns the result of a read without letters: failure (once), 0 at the end of the data, or
// EAGAIN. The caller holds mu.
func (m *mailbox) empty() Errno {
	switch {
	case m.failure != 0:
		errno := m.failure
		m.failure = 0
		return errno
	case m.ended || m.refused:
		return 0
	}
	return linux.EAGAIN
}

// end marks the end of the data. failure, if not 0, is returned to the reader after the last letter.
func (m *mailbox) end(failure Errno) {
	m.mu.Lock()
	m.ended = true
	m.failure = failure
	m.mu.Unlock()
	e := PollIn | PollRdHup
	if failure != 0 {
		e |= PollErr
	}
	m.reader.Notify(e)
}

// refuse marks that the reader has closed, and discards the letters. It reports whether there were any.
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

// state returns what poll needs.
func (m *mailbox) state() (readable, ended, refused bool, failure Errno) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.letters) > 0, m.ended, m.refused, m.failure
}

// waiting returns the number of readable bytes: all bytes of a stream, otherwise the bytes of the first
// message.
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

// queued returns the size of all letters in bytes, overhead included.
func (m *mailbox) queued() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.size
}

func tellAll(queues map[*file.Queue]struct{}, e Events) {
	for q := range queues {
		q.Notify(e)
	}
}
