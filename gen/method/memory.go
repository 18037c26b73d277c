//go:build linux

package method

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"loam/link/afxdp"
)

// memorySender is the common part of the methods ring and xdp. Frames are written into memory that is shared with the
// kernel, and one system call notifies the kernel of a batch. The methods differ in the kind of memory.
type memorySender struct {
	counters
	m memory
}

// memory is a set of buffers for frames, shared with the kernel.
type memory interface {
	// slot returns the buffer for the next frame, or nil if all buffers are in use.
	slot() []byte
	// fits reports whether the kernel accepts a frame of n bytes without silently dropping it.
	fits(n int) bool
	// put queues the first n bytes of the slot for the next kick.
	put(n int)
	// repeat queues a frame up to n times, as long as buffers are free, and returns how often. Every call must pass the
	// same slice with the same content.
	repeat(frame []byte, n int) int
	// kick makes the kernel send the queued frames. Frames that the kernel cannot accept now stay queued until the next
	// kick.
	kick() error
	// pause waits a short time, in which a buffer may become free.
	pause() error
	handed() uint64 // number of frames that put and repeat have queued so far
	gone() uint64   // number of queued frames that have been sent so far
	close() error
}

// Layer implements Sender.
func (s *memorySender) Layer() Layer { return Frame }

// Send implements Sender.
func (s *memorySender) Send(n int, fill func(slot []byte) int) (sent int, err error) {
	bytes, kicks, refused := 0, 0, 0
	for sent+refused < n {
		slot := s.m.slot()
		if slot == nil {
			kicks++
			if err = s.room(); err != nil {
				break
			}
			continue
		}
		length := fill(slot)
		if length == 0 {
			break
		}
		if !s.m.fits(length) {
			refused++
			continue
		}
		s.m.put(length)
		sent++
		bytes += length
	}
	s.refused.Add(uint64(refused))
	return sent, s.end(sent, bytes, kicks, err)
}

// Repeat implements Repeater.
func (s *memorySender) Repeat(frame []byte, n int) (sent int, err error) {
	if !s.m.fits(len(frame)) {
		s.refused.Add(uint64(n))
		return 0, nil
	}
	kicks := 0
	for err == nil {
		if sent += s.m.repeat(frame, n-sent); sent == n {
			break
		}
		kicks++
		err = s.room()
	}
	return sent, s.end(sent, sent*len(frame), kicks, err)
}

// end makes the kernel send the frames that Send or Repeat has queued, and updates the counters.
func (s *memorySender) end(sent, bytes, kicks int, err error) error {
	if sent > 0 && err == nil {
		kicks++
		err = s.kick()
	}
	s.took(sent, bytes, kicks)
	s.left.Store(s.m.gone())
	return err
}

// kick makes the kernel send the queued frames (memory.kick), and counts the result. It returns only errors after which
// nothing more can be sent.
func (s *memorySender) kick() error {
	switch err := s.m.kick(); err {
	case nil, unix.EINTR:
	case afxdp.ErrFull, unix.EAGAIN, unix.EBUSY:
		s.busy.Add(1)
	case unix.ENOBUFS, unix.ENOMEM:
		s.noBuffers.Add(1)
	case unix.ENETDOWN, unix.ENXIO:
		s.down.Add(1)
	case unix.EINVAL, unix.EMSGSIZE: // with PACKET_LOSS, the kernel skips the bad frame and continues
		s.refused.Add(1)
	default:
		return os.NewSyscallError("send", err)
	}
	return nil
}

// room waits for a free buffer, at most for the patience of the sender.
func (s *memorySender) room() error {
	s.busy.Add(1)
	for since := time.Now(); ; {
		if err := s.kick(); err != nil {
			return err
		}
		if s.m.slot() != nil {
			return nil
		}
		if most := s.patience(); time.Since(since) > most {
			return fmt.Errorf("no frame could leave for %v: is the interface up?", most)
		}
		if err := s.m.pause(); err != nil {
			return err
		}
	}
}

// Flush implements Sender.
func (s *memorySender) Flush(timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(20 * time.Microsecond) {
		left := s.m.gone()
		s.left.Store(left)
		if left == s.m.handed() {
			return nil
		}
		if time.Now().After(deadline) {
			return ErrTimeout
		}
		if err := s.kick(); err != nil {
			return err
		}
	}
}

// Close implements Sender.
func (s *memorySender) Close() error { return s.m.close() }
