//go:build linux

package method

import (
	"time"

	"golang.org/x/sys/unix"

	"loam/link"
	"loam/link/fd"
)

// batched sends each batch with one sendmmsg(2), one frame per message. Two sending methods use it: "packet", and "mmsg" with
// --plain. They differ only in the socket.
type batched struct {
	counters
	fd       int
	layer    Layer
	slots    []byte // memory of all messages of a batch
	size     int
	lengths  []int
	messages *fd.Messages
	same     bool // every message is the frame of Repeat
	front    int  // bytes of the virtio-net header before each frame, or 0
	offload  link.Offload
}

// checksumBatched is a packet socket that can leave checksums to the device.
type checksumBatched struct{ batched }

// LeaveChecksum implements ChecksumLeaver.
func (s *checksumBatched) LeaveChecksum(start, offset int) { s.offload = leave(start, offset) }

// newBatched returns a sender on a connected or bound socket and takes ownership of it.
func newBatched(s int, l Layer, c Config, front int) *batched {
	return &batched{
		fd: s, layer: l, slots: make([]byte, c.Batch*(front+c.Size)), size: c.Size, front: front,
		lengths: make([]int, c.Batch), messages: fd.NewMessages(c.Batch, 0),
	}
}

// Layer implements Sender.
func (s *batched) Layer() Layer { return s.layer }

// Send implements Sender.
func (s *batched) Send(n int, fill func(slot []byte) int) (sent int, err error) {
	for asked := 0; asked < n; {
		want := min(n-asked, len(s.lengths))
		count := s.prepare(want, fill)
		asked += count
		gone, err := s.push(count)
		sent += gone
		if err != nil || count < want {
			return sent, err
		}
	}
	return sent, nil
}

// Repeat implements Repeater.
func (s *batched) Repeat(frame []byte, n int) (sent int, err error) {
	if !s.same {
		for i := range s.lengths {
			if s.front > 0 {
				s.set(i, copy(s.slot(i), frame))
				continue
			}
			s.lengths[i] = len(frame)
			s.messages.Set(i, frame) // one buffer for all messages
		}
		s.same = true
	}
	for asked := 0; asked < n && err == nil; {
		count, gone := min(n-asked, len(s.lengths)), 0
		asked += count
		gone, err = s.push(count)
		sent += gone
	}
	return sent, err
}

// prepare calls fill for a batch of up to n frames and returns their number.
func (s *batched) prepare(n int, fill func(slot []byte) int) int {
	s.same = false
	for i := range n {
		length := fill(s.slot(i))
		if length == 0 {
			return i
		}
		s.set(i, length)
	}
	return n
}

// slot returns the memory of frame i.
func (s *batched) slot(i int) []byte {
	return s.slots[i*(s.front+s.size):][s.front:][:s.size]
}

// set makes the first n bytes of slot i message i, with a virtio-net header in front if the socket uses one.
func (s *batched) set(i, n int) {
	message := s.slots[i*(s.front+s.size):][:s.front+n]
	if s.front > 0 {
		s.offload.Put(message)
	}
	s.lengths[i] = n
	s.messages.Set(i, message)
}

// push hands over a batch. It skips frames that the kernel refuses.
func (s *batched) push(count int) (sent int, err error) {
	var p patience
	bytes, kicks := 0, 0
	for done := 0; done < count && err == nil; {
		n, e := s.messages.SendAtOnce(uintptr(s.fd), done, count-done)
		kicks++
		for i := range n {
			bytes += s.lengths[done+i]
		}
		done, sent = done+n, sent+n
		if n > 0 {
			p = patience{}
		}
		if errno, failed := e.(unix.Errno); failed {
			if err = p.wait(s.fd, &s.counters, errno); err == errRefused {
				done, err = done+1, nil
			}
		}
	}
	s.took(sent, bytes, kicks)
	return sent, err
}

// Flush implements Sender.
func (s *batched) Flush(timeout time.Duration) error { return flush(s.fd, &s.counters, timeout) }

// Close implements Sender.
func (s *batched) Close() error { return unix.Close(s.fd) }
