package socket

import (
	"loam/posix/file"
	"loam/stack"
)

// PollEvents converts events of the stack to events of poll(2).
func PollEvents(e stack.Events) file.Events {
	var p file.Events
	if e&stack.Readable != 0 {
		p |= file.PollIn
	}
	if e&stack.Urgent != 0 {
		p |= file.PollPri
	}
	if e&stack.Writable != 0 {
		p |= file.PollOut
	}
	if e&stack.ReadHangup != 0 {
		p |= file.PollRdHup
	}
	if e&stack.Hangup != 0 {
		p |= file.PollHup
	}
	if e&stack.Error != 0 {
		p |= file.PollErr
	}
	return p
}

// Relay notifies the waiters of this socket of events of the socket of the stack.
func (s *Base) Relay(e stack.Events) { s.Waiters.Notify(PollEvents(e)) }
