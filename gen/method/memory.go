//go:build linux

package method

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"loam/link/afxdp"
)

// memorySender is what ring and xdp have in common: frames are written into memory
// that is shared with the kernel, and one call tells it of a batch. They differ in
// the memory.
type memorySender struct {
	counters
	m memory
}

// memory is frames that are shared with the kernel.
type memory interface {
	// slot is room for the next frame; nil: all of it is under way.
	slot() []byte
	// fits reports whether the kernel takes a frame of n bytes and does not let it fall.
	fits(n int) bool
	// put has the first n bytes of the slot sent at the next kick.
	put(n int)
	// repeat puts a frame up to n times, as often as there is room. It is the same
	// frame, at the same place, each time that it is called.
	repeat(frame []byte, n int) int
	// kick has the kernel send what was put. What it cannot take now stays there for
	// the next kick.
	kick() error
	// pause waits for room, not for long.
	pause() error
	handed() uint64 // frames put
	gone() uint64   // of them, those that have left
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

// end hands over what Send or Repeat has put, and counts it.
func (s *memorySender) end(sent, bytes, kicks int, err error) error {
	if sent > 0 && err == nil {
		kicks++
		err = s.tell()
	}
	s.took(sent, bytes, kicks)
	s.left.Store(s.m.gone())
	return err
}

// tell kicks, and counts what the kernel says to that.
func (s *memorySender) tell() error {
	switch err := s.m.kick(); err {
	case nil, unix.EINTR:
	case afxdp.ErrFull, unix.EAGAIN, unix.EBUSY:
		s.busy.Add(1)
	case unix.ENOBUFS, unix.ENOMEM:
		s.noBuffers.Add(1)
	case unix.ENETDOWN, unix.ENXIO:
		s.down.Add(1)
	case unix.EINVAL, unix.EMSGSIZE: // with PACKET_LOSS the kernel goes on behind that frame
		s.refused.Add(1)
	default:
		return os.NewSyscallError("send", err)
	}
	return nil
}

var errNoSlot = errors.New("no frame could leave for a second: is the interface up?")

// room waits for a free slot.
func (s *memorySender) room() error {
	s.busy.Add(1)
	for deadline := time.Now().Add(maxPatience); ; {
		if err := s.tell(); err != nil {
			return err
		}
		if s.m.slot() != nil {
			return nil
		}
		if time.Now().After(deadline) {
			return errNoSlot
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
		if err := s.tell(); err != nil {
			return err
		}
	}
}

// Close implements Sender.
func (s *memorySender) Close() error { return s.m.close() }
