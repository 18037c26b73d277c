//go:build linux

package method

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"loam/link/afxdp"
)

// memorySender is the common part of ring and xdp: frames are written into memory shared with the kernel, and one
// system call notifies the kernel of a batch. The methods differ in the memory.
type memorySender struct {
	counters
	m memory
}

// memory is a set of frames shared with the kernel.
type memory interface {
	// slot returns room for the next frame, or nil if every frame is in flight.
	slot() []byte
	// fits reports whether the kernel accepts a frame of n bytes without silently dropping it.
	fits(n int) bool
	// put queues the first n bytes of the slot for the next kick.
	put(n int)
	// repeat queues a frame up to n times, as often as there is room, and returns how often. Every call must pass
	// the same slice with the same content.
	repeat(frame []byte, n int) int
	// kick makes the kernel send the queued frames. Frames that it cannot accept now stay queued for the next kick.
	kick() error
	// pause waits a short time for room.
	pause() error
	handed() uint64 // number of frames that put and repeat have queued
	gone() uint64   // number of these frames that have been sent
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

// end kicks the frames queued by Send or Repeat and updates the counters.
func (s *memorySender) end(sent, bytes, kicks int, err error) error {
	if sent > 0 && err == nil {
		kicks++
		err = s.kick()
	}
	s.took(sent, bytes, kicks)
	s.left.Store(s.m.gone())
	return err
}

// kick wakes the kernel and counts the kernel's answer. It returns only errors that end the sending.
func (s *memorySender) kick() error {
	switch err := s.m.kick(); err {
	case nil, unix.EINTR:
	case afxdp.ErrFull, unix.EAGAIN, unix.EBUSY:
		s.busy.Add(1)
	case unix.ENOBUFS, unix.ENOMEM:
		s.noBuffers.Add(1)
	case unix.ENETDOWN, unix.ENXIO:
		s.down.Add(1)
	case unix.EINVAL, unix.EMSGSIZE: // with PACKET_LOSS the kernel continues after the bad frame
		s.refused.Add(1)
	default:
		return os.NewSyscallError("send", err)
	}
	return nil
}

// room waits for a free slot, for the patience of the sender.
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
