//go:build linux

package method

import (
	"time"

	"golang.org/x/sys/unix"

	"loam/link"
	"loam/link/fd"
)

// batched sends each batch by one call of sendmmsg(2), with one frame per message. The methods "packet" and, with
// --plain, "mmsg" use it; they differ only in the socket.
type batched struct {
	counters
	fd       int
	layer    Layer
	slots    []byte // memory of all messages of a batch
	size     int
	lengths  []int
	messages *fd.Messages
	same     bool // every message contains the frame of the last call of Repeat
	front    int  // size in bytes of the virtio-net header before each frame; 0: there is none
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
			s.messages.Set(i, frame) // all messages refer to the same buffer
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

// prepare fills a batch of up to n frames by calling fill, and returns the number of frames.
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

// set makes the first n bytes of slot i the content of message i. If the socket uses a virtio-net header, it is put
// before them.
func (s *batched) set(i, n int) {
	message := s.slots[i*(s.front+s.size):][:s.front+n]
	if s.front > 0 {
		s.offload.Put(message)
	}
	s.lengths[i] = n
	s.messages.Set(i, message)
}

// push sends a batch to the kernel. It skips frames that the kernel refuses.
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
