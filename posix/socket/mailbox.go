package socket

import (
	"sync"

	"loam/abi/linux"
	"loam/posix/file"
)

// Mailbox is a queue of data that was sent to a Unix socket and has not been received. Each end of a connection has a
// mailbox. A datagram socket has one mailbox for all senders.
//
// No function that takes another lock is called while the lock of a Mailbox is held.
type Mailbox struct {
	mu       sync.Mutex
	messages []Message   // messages, the oldest first
	held     int64       // estimated bytes of the kernel's heap that descriptors in messages hold
	size     int         // size of all messages in bytes, including messageOverhead for each
	ended    bool        // the sender has closed, so no more messages will arrive
	refused  bool        // the reader has closed, so no more messages are accepted
	failure  linux.Errno // error that the reader gets once, after the last message
	only     *file.Queue // the writer whose messages are accepted; nil: each

	Reader  *file.Queue              // notified when a message arrives
	writers map[*file.Queue]struct{} // wait queues of the senders that found no room in the mailbox
}

// Message is the data of one send call, with the descriptors that it passes. A read of a stream joins the data of successive
// messages, but stops before a message with control messages.
type Message struct {
	Data    []byte
	From    Address   // address of the sender, if it is a bound datagram socket
	Control []Control // control messages with descriptors; others are not queued
	Sender  Credentials

	held int64 // see Mailbox.held

	// sender is notified when the message has been received. It is nil unless the sender needs this (EPOLLET).
	sender *file.Queue
}

// messageOverhead is the size accounted for each message in addition to its data, in bytes.
const messageOverhead = 256

func (l *Message) size() int { return len(l.Data) + messageOverhead }

// Put queues a message, with a copy of its data, and takes over its descriptors. With stream, the data
// may be truncated to the available room. It returns the number of bytes accepted. Errors: EAGAIN;
// EPIPE if the reader has closed; EPERM if it receives only from another writer; EMSGSIZE.
func (m *Mailbox) Put(l Message, limit int, stream bool, writer *file.Queue) (int, linux.Errno) {
	l.held = heldBy(l.Control) // takes the locks of other files
	m.mu.Lock()
	switch room := limit - m.size; {
	case m.refused || m.ended:
		m.mu.Unlock()
		return 0, linux.EPIPE
	case !m.accepts(writer):
		m.mu.Unlock()
		return 0, linux.EPERM
	case !stream && len(l.Data) > limit:
		m.mu.Unlock()
		return 0, linux.EMSGSIZE
	// the condition of hasRoom: if there is room for more than the overhead, a message may exceed the limit
	case room <= messageOverhead:
		m.wantRoom(writer)
		m.mu.Unlock()
		return 0, linux.EAGAIN
	case stream && l.size() > room:
		l.Data = l.Data[:room-messageOverhead]
	}
	l.Data = append([]byte(nil), l.Data...)
	if writer.WantsEvery() && !writer.Owned() { // an owner gets a signal only after a call found no room
		l.sender = writer
	}
	m.messages = append(m.messages, l)
	m.size += l.size()
	m.held += l.held
	m.mu.Unlock()
	m.Reader.Notify(file.PollIn)
	return len(l.Data), 0
}

// AcceptOnly makes the mailbox accept only the messages of a writer; nil means of each.
func (m *Mailbox) AcceptOnly(writer *file.Queue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.only = writer
}

// Accepts reports whether the mailbox accepts the messages of a writer.
func (m *Mailbox) Accepts(writer *file.Queue) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.accepts(writer)
}

func (m *Mailbox) accepts(writer *file.Queue) bool { return m.only == nil || m.only == writer }

func (m *Mailbox) wantRoom(writer *file.Queue) {
	if m.writers == nil {
		m.writers = make(map[*file.Queue]struct{})
	}
	m.writers[writer] = struct{}{}
}

// HasRoom reports whether Put would accept a message. If not, it registers the writer, which is notified when there is room.
func (m *Mailbox) HasRoom(limit int, writer *file.Queue) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused || m.ended || limit-m.size > messageOverhead {
		return true
	}
	m.wantRoom(writer)
	return false
}

// TakeMessage receives one message. With peek, the message stays in the mailbox. At the end of the data it returns the zero
// Received. Errors: EAGAIN if the mailbox is empty; the error passed to End, once.
func (m *Mailbox) TakeMessage(b []byte, peek bool) (Received, linux.Errno) {
	m.mu.Lock()
	if len(m.messages) == 0 {
		defer m.mu.Unlock()
		return Received{}, m.empty()
	}
	l := &m.messages[0]
	r := Received{N: copy(b, l.Data), Len: len(l.Data), From: l.From, Sender: l.Sender}
	if peek {
		m.mu.Unlock()
		return r, 0
	}
	r.Control = l.Control
	sender := m.shift()
	woken := m.waitingWriters()
	m.mu.Unlock()
	notifyRoom(sender, woken)
	return r, 0
}

// TakeStream receives bytes of one or more messages. With apart, all bytes have the same sender. Errors: those of TakeMessage.
func (m *Mailbox) TakeStream(b []byte, peek, apart bool) (Received, linux.Errno) {
	m.mu.Lock()
	if len(m.messages) == 0 {
		defer m.mu.Unlock()
		return Received{}, m.empty()
	}
	r := Received{Sender: m.messages[0].Sender}
	var sender *file.Queue // a stream has one sending socket
	for i := 0; r.N < len(b) && i < len(m.messages); {
		l := &m.messages[i]
		if r.N > 0 && (l.Control != nil || apart && l.Sender != r.Sender) {
			break
		}
		n := copy(b[r.N:], l.Data)
		r.N += n
		if peek {
			i++
			continue
		}
		carried := l.Control
		r.Control, l.Control = carried, nil
		m.held, l.held = m.held-l.held, 0
		l.Data = l.Data[n:]
		m.size -= n
		if len(l.Data) == 0 {
			sender = m.shift()
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
	notifyRoom(sender, woken)
	return r, 0
}

// shift removes the first message, and returns its sender. The caller holds mu.
func (m *Mailbox) shift() (sender *file.Queue) {
	m.size -= m.messages[0].size()
	m.held -= m.messages[0].held
	sender = m.messages[0].sender
	m.messages[0] = Message{}
	if m.messages = m.messages[1:]; len(m.messages) == 0 {
		m.messages = nil
	}
	return sender
}

// waitingWriters removes and returns the writers that found no room. The caller holds mu.
func (m *Mailbox) waitingWriters() map[*file.Queue]struct{} {
	writers := m.writers
	m.writers = nil
	return writers
}

// empty returns the result of a read from a mailbox without messages: the error failure once, 0 at the end of the data, or
// EAGAIN. The caller holds mu.
func (m *Mailbox) empty() linux.Errno {
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

// End marks the end of the data. The reader gets the error failure, if it is not 0, once
// after the last message. The reader is also notified of the events in the parameter
// more.
func (m *Mailbox) End(failure linux.Errno, more file.Events) {
	m.mu.Lock()
	m.ended = true
	m.failure = failure
	m.mu.Unlock()
	e := file.PollIn | file.PollRdHup | more
	if failure != 0 {
		e |= file.PollErr
	}
	m.Reader.Notify(e)
}

// Refuse records that the reader has closed, and discards the messages. It reports whether there were any, and returns the
// descriptions in them, which the caller releases.
func (m *Mailbox) Refuse() (unread bool, passed []*file.Description) {
	m.mu.Lock()
	m.refused = true
	messages, writers := m.messages, m.writers
	m.messages, m.writers, m.size, m.held = nil, nil, 0, 0
	m.mu.Unlock()
	for i := range messages {
		for j := range messages[i].Control {
			passed = append(passed, messages[i].Control[j].Take()...)
		}
	}
	notifyAll(writers, file.PollOut|file.PollHup)
	return len(messages) > 0, passed
}

// State returns the properties of the mailbox that poll(2) of a socket needs.
func (m *Mailbox) State() (readable, ended, refused bool, failure linux.Errno) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.messages) > 0, m.ended, m.refused, m.failure
}

// Waiting returns the number of readable bytes: all bytes of a stream, otherwise the bytes of the first
// message.
func (m *Mailbox) Waiting(stream bool) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for i := range m.messages {
		n += len(m.messages[i].Data)
		if !stream {
			break
		}
	}
	return n
}

// Queued returns the size of all messages in bytes, overhead included.
func (m *Mailbox) Queued() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.size
}

// Held returns an estimate of the bytes of the kernel's heap that the messages keep, with the descriptors in them.
func (m *Mailbox) Held() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(m.size) + m.held
}

// notifyRoom notifies the writers that found no room, and the sender of a message, unless it is nil or one of them.
func notifyRoom(sender *file.Queue, writers map[*file.Queue]struct{}) {
	if _, also := writers[sender]; sender != nil && !also {
		sender.Notify(file.PollOut)
	}
	notifyAll(writers, file.PollOut)
}

func notifyAll(queues map[*file.Queue]struct{}, e file.Events) {
	for q := range queues {
		q.Notify(e)
	}
}

// TakeFailure returns and clears the error for the reader.
func (m *Mailbox) TakeFailure() linux.Errno {
	m.mu.Lock()
	defer m.mu.Unlock()
	errno := m.failure
	m.failure = 0
	return errno
}
