//go:build linux

package method

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"loam/link/afxdp"
	"loam/wire"
)

// xdpSender is the method xdp: frames are written where the driver, or the kernel
// in its place, reads them, and one call tells of a batch, where the driver wants
// to be told at all. Nothing of the kernel's network stack is in between.
//
// Sending takes no XDP program, and so changes nothing about the interface.
type xdpSender struct {
	counters
	port *xdpPort
	tx   *afxdp.Tx
	size int
}

// xdpTxFrames is how many frames may be under way. In copy mode only as many as a
// batch ever are; a device with zero copy has its own ring to keep filled.
const xdpTxFrames = 1024

func openXDP(c Config) (Sender, error) {
	c = c.WithDefaults()
	p, err := takePort(c, true)
	if err != nil {
		return nil, err
	}
	return &xdpSender{port: p, tx: &p.socket.Tx, size: c.Size}, nil
}

// Layer implements Sender.
func (s *xdpSender) Layer() Layer { return Frame }

// Send implements Sender.
func (s *xdpSender) Send(n int, fill func(slot []byte) int) (sent int, err error) {
	bytes, kicks, refused := 0, 0, 0
	for sent+refused < n {
		slot := s.tx.Slot()
		if slot == nil {
			kicks++
			if err = s.room(); err != nil {
				break
			}
			continue
		}
		length := fill(slot[:s.size])
		if length == 0 {
			break
		}
		if length < wire.EthernetLen || length > s.port.longest {
			refused++ // the kernel would take it, and then let it fall
			continue
		}
		s.tx.Put(length)
		sent++
		bytes += length
	}
	if sent > 0 && err == nil {
		kicks++
		err = s.kick()
	}
	s.took(sent, bytes, kicks)
	s.refused.Add(uint64(refused))
	s.left.Store(s.tx.Left())
	return sent, err
}

// kick has the kernel send what is in the ring. What it cannot take now stays
// there for the next kick.
func (s *xdpSender) kick() error {
	switch err := s.tx.KickAtOnce(); err {
	case nil:
	case afxdp.ErrFull:
		s.busy.Add(1)
	case unix.ENOBUFS, unix.ENOMEM:
		s.noBuffers.Add(1)
	case unix.ENETDOWN, unix.ENXIO:
		s.down.Add(1)
	default:
		return os.NewSyscallError("send", err)
	}
	return nil
}

// room waits for a free slot.
func (s *xdpSender) room() error {
	for deadline := time.Now().Add(maxPatience); ; {
		s.busy.Add(1)
		if err := s.kick(); err != nil {
			return err
		}
		if s.tx.Slot() != nil {
			return nil
		}
		if time.Now().After(deadline) {
			return errNoSlot
		}
		time.Sleep(20 * time.Microsecond) // nobody tells when memory comes back
	}
}

// Flush implements Sender.
func (s *xdpSender) Flush(timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(20 * time.Microsecond) {
		left := s.tx.Left()
		s.left.Store(left)
		if left == s.tx.Handed() {
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
func (s *xdpSender) Close() error { return s.port.leave(&s.port.sends) }
