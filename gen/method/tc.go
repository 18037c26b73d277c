//go:build linux

package method

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"loam/link/afxdp"
	"loam/link/tc"
	"loam/wire"
)

// tcSender writes frames into memory that is shared with an eBPF program in the kernel. One system call makes the
// program send many frames.
type tcSender struct {
	counters
	tx      *tc.Tx
	longest int // length of the longest frame that the interface accepts
}

// openTC opens the method tc for sending.
func openTC(c Config) (Sender, error) {
	c = c.WithDefaults()
	i, err := net.InterfaceByName(c.Interface)
	if err != nil {
		return nil, fmt.Errorf("there is no interface %q: ip link lists those that there are", c.Interface)
	}
	tx, err := tc.OpenTx(tc.TxConfig{Interface: c.Interface, Slots: c.Batch, Size: c.Size})
	if err != nil {
		return nil, err
	}
	return &tcSender{tx: tx, longest: i.MTU + wire.EthernetLen + 2*wire.VLANTagLen}, nil
}

// Layer implements Sender.
func (s *tcSender) Layer() Layer { return Frame }

// Send implements Sender.
func (s *tcSender) Send(n int, fill func(slot []byte) int) (sent int, err error) {
	before, bytes, kicks := s.tx.Sent(), 0, 0
	for asked := 0; asked < n && err == nil; asked++ {
		slot := s.tx.Slot()
		if slot == nil {
			kicks++
			err = s.kick()
			slot = s.tx.Slot()
		}
		if err != nil {
			break
		}
		length := fill(slot)
		if length == 0 {
			break
		}
		if length <= wire.EthernetLen || length > s.longest {
			s.refused.Add(1)
			continue
		}
		s.tx.Put(length)
		bytes += length
	}
	if err == nil {
		kicks++
		err = s.kick()
	}
	sent = int(s.tx.Sent() - before)
	s.took(sent, bytes, kicks)
	s.left.Store(s.tx.Sent())
	return sent, err
}

// kick makes the eBPF program send all frames written so far. It waits while the interface accepts no more frames.
func (s *tcSender) kick() error {
	for since := (time.Time{}); ; {
		waiting := s.tx.Waiting()
		errno := s.tx.Kick()
		if errno == 0 {
			return nil
		}
		now := time.Now()
		if s.tx.Waiting() < waiting || since.IsZero() {
			since = now
		} else if most := s.patience(); now.Sub(since) > most {
			return fmt.Errorf("no frame could leave for %v: %w", most, errno)
		}
		switch errno {
		case unix.EAGAIN, unix.EBUSY:
			s.busy.Add(1)
		case unix.ENOBUFS, unix.ENOMEM:
			s.noBuffers.Add(1)
			time.Sleep(20 * time.Microsecond)
		case unix.ENETDOWN, unix.ENXIO:
			s.down.Add(1)
			time.Sleep(time.Millisecond)
		default:
			return os.NewSyscallError("BPF_PROG_TEST_RUN", errno)
		}
	}
}

// Flush implements Sender. A Kick sends synchronously, so there is nothing to wait for.
func (s *tcSender) Flush(time.Duration) error { return nil }

// Close implements Sender.
func (s *tcSender) Close() error { return s.tx.Close() }

// tcReceiver is the receiving half of the method tc. An eBPF program takes matching frames away from the kernel. It
// leaves all other frames to the kernel, and also matching frames with a VLAN tag or with several segments.
type tcReceiver struct {
	rx       *tc.Rx
	listener int // descriptor of the packet socket that keeps promiscuous mode enabled, or -1

	mu     sync.Mutex // guards the fields below: Drops may be called during Close and after it
	closed bool
	drops  uint64 // number of dropped frames at Close
	passed uint64 // number of frames left to the kernel at Close
}

// listenTC opens a receiver for the method tc. It receives share number Config.Queue of Config.Queues shares.
func listenTC(c Config) (Receiver, error) {
	c = c.WithDefaults()
	rx, err := tc.OpenRx(tc.RxConfig{Interface: c.Interface, Match: c.Match, Share: c.Queue, Shares: c.Queues})
	if err != nil {
		return nil, err
	}
	r := &tcReceiver{rx: rx, listener: -1}
	if c.Promiscuous {
		index, err := interfaceIndex(c.Interface)
		if err == nil {
			r.listener, err = afxdp.Promiscuous(index)
		}
		if err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// lookAgain is the interval at which an idle receiver polls the ring, which does not notify the receiver.
const lookAgain = 500 * time.Microsecond

// Receive implements Receiver.
func (r *tcReceiver) Receive(timeout time.Duration, got func(frame []byte, at int64)) (count int, err error) {
	frame, at, ok := r.rx.Next()
	if !ok && timeout > 0 {
		frame, at, ok = r.await(timeout)
	}
	if !ok {
		return 0, nil
	}
	// Bounds one call: if the ring is filled as fast as it is emptied, the call would otherwise never return.
	const most = 1 << 14
	// Slots are released before the ring is full, so that frames can be received in the meantime.
	const releaseEvery = 256
	for epoch := sinceEpoch(); ok; frame, at, ok = r.rx.Next() {
		got(frame, at+epoch)
		if count++; count == most {
			break
		}
		if count%releaseEvery == 0 {
			r.rx.Release()
		}
	}
	r.rx.Release()
	return count, nil
}

// await polls until there is a frame or the timeout is over. Between polls it calls nanosleep(2), because time.Sleep in
// a goroutine that is locked to its thread would wake another thread twice.
func (r *tcReceiver) await(timeout time.Duration) (frame []byte, at int64, ok bool) {
	for end := time.Now().Add(timeout); !ok; frame, at, ok = r.rx.Next() {
		left := time.Until(end)
		if left <= 0 {
			return nil, 0, false
		}
		nap := unix.NsecToTimespec(int64(min(left, lookAgain)))
		unix.Nanosleep(&nap, nil) // returns early on a signal
	}
	return frame, at, true
}

// sinceEpoch returns CLOCK_REALTIME minus CLOCK_MONOTONIC, in nanoseconds.
func sinceEpoch() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return time.Now().UnixNano() - t.Nano()
}

// Drops implements Receiver.
func (r *tcReceiver) Drops() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		return r.rx.Drops()
	}
	return r.drops
}

// Passed implements Passer.
func (r *tcReceiver) Passed() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		return r.rx.Passed()
	}
	return r.passed
}

// Close implements Receiver.
func (r *tcReceiver) Close() (err error) {
	drops, passed := r.Drops(), r.Passed()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed, r.drops, r.passed = true, drops, passed
	if r.listener >= 0 {
		err = unix.Close(r.listener)
		r.listener = -1
	}
	return errors.Join(err, r.rx.Close())
}
