package socket

import (
	"loam/posix/file"
	"loam/stack"
)

// DatagramEvents converts events of the stack to the events of poll(2) for a socket that is not TCP's.
func DatagramEvents(e stack.Events) file.Events {
	p := PollEvents(e)
	if p&file.PollOut != 0 {
		p |= file.PollBand
	}
	return p
}

// PollEvents converts events of the stack to the events of poll(2) for a TCP socket.
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
