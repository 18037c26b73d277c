//go:build linux

package afxdp

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Tx is the sending half of a socket. A frame is written where it lies until it
// has left: Slot returns a place, Put says how long the frame is, Kick hands over
// what was put.
//
// Places that are free are kept on a stack, not in a circle: the one that was
// used last is used next, while it is still in the cache. In copy mode a batch has
// left when Kick returns, and so a few kilobytes go to and fro, where a circle
// would walk through megabytes.
//
// Kick makes a system call unless the driver has said that it looks at the ring
// anyway (XDP_USE_NEED_WAKEUP), and also then if the ring is full, or was empty,
// lest the driver and we wait for each other. In copy mode the call does the work: it makes a
// packet of the kernel of each frame and gives it to the driver.
type Tx struct {
	fd       int
	memory   *memory
	ring     ring[unix.XDPDesc]
	done     ring[uint64] // completion
	zeroCopy bool

	base    uint64   // of our part of the memory
	free    []uint64 // addresses of slots that are free; the top is the last
	same    uint64   // address of the slot of Repeat, which is never free; noSlot before
	pending []uint8  // by slot: chunks that have not left, where slots have several
	staged  uint32   // descriptors put and not yet handed over
	handed  uint64   // frames put
	left    uint64   // frames that have left
	poll    [1]unix.PollFd
}

// noSlot is the address of none.
const noSlot = ^uint64(0)

// ErrFull is what Kick returns while the kernel takes no more for now: nothing is
// lost, and the next Kick goes on.
var ErrFull = errors.New("afxdp: the kernel takes no more for now")

// mapRings maps the ring of this half, and the completion ring, which belongs to
// owner.
func (t *Tx) mapRings(owner int, at unix.XDPMmapOffsets, n int) (err error) {
	if t.ring, err = mapRing[unix.XDPDesc](t.fd, unix.XDP_PGOFF_TX_RING, at.Tx, n); err != nil {
		return err
	}
	t.done, err = mapRing[uint64](owner, unix.XDP_UMEM_PGOFF_COMPLETION_RING, at.Cr, n)
	return err
}

// ownAll puts all slots of the k-th socket of m on the stack.
func (t *Tx) ownAll(m *memory, k int) {
	t.memory, t.base = m, m.txBase(k)
	t.free = make([]uint64, m.txSlots)
	t.pending = make([]uint8, m.txSlots)
	t.same = noSlot
	for i := range t.free {
		t.free[len(t.free)-1-i] = t.base + uint64(i*m.slot*m.chunk+m.stagger(i))
	}
}

// Slot returns the place for the next frame, nil if all are under way. It holds
// whatever was sent from it before, and is the same place until Put.
func (t *Tx) Slot() []byte {
	if (len(t.free) == 0 || t.places() == 0) && t.Reap() == 0 {
		return nil
	}
	at, m := t.free[len(t.free)-1], t.memory
	end := int(at)&^(m.chunk-1) + m.slot*m.chunk
	return m.bytes[at:end:end]
}

// places is for how many more frames the rings have room.
func (t *Tx) places() int { return t.memory.txSlots - int(t.handed-t.left) }

// Repeat puts a frame up to n times, as often as there is room, and returns how often
// that was. The frame is written once, to a slot that is kept for it: it is the same
// frame in each call. Nobody changes it on its way, so all may lie in one place.
func (t *Tx) Repeat(frame []byte, n int) (put int) {
	if t.memory.multi() {
		for ; put < n; put++ { // of several pieces
			slot := t.Slot()
			if slot == nil {
				break
			}
			t.Put(copy(slot, frame))
		}
		return put
	}
	if t.same == noSlot {
		slot := t.Slot()
		if slot == nil {
			return 0
		}
		copy(slot, frame)
		t.same, t.free = t.free[len(t.free)-1], t.free[:len(t.free)-1]
	}
	if n > t.places() {
		t.Reap()
		n = min(n, t.places())
	}
	for range n {
		*t.ring.slot(t.staged) = unix.XDPDesc{Addr: t.same, Len: uint32(len(frame))}
		t.staged++
	}
	t.handed += uint64(n)
	return n
}

// Put marks the first n bytes of the slot that Slot returned, at least one, as the
// next frame. The ring has a place for each chunk that there is.
func (t *Tx) Put(n int) {
	at := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	t.handed++
	if t.memory.slot > 1 {
		t.putPieces(at, n)
		return
	}
	*t.ring.slot(t.staged) = unix.XDPDesc{Addr: at, Len: uint32(n)}
	t.staged++
}

// putPieces puts a frame as descriptors of a chunk each.
func (t *Tx) putPieces(at uint64, n int) {
	chunk := t.memory.chunk
	slot := t.slotOf(at)
	for ; n > 0; n, at = n-chunk, at+uint64(chunk) {
		d := unix.XDPDesc{Addr: at, Len: uint32(min(n, chunk))}
		if n > chunk {
			d.Options = unix.XDP_PKT_CONTD
		}
		*t.ring.slot(t.staged) = d
		t.staged++
		t.pending[slot]++
	}
}

func (t *Tx) slotOf(at uint64) int { return int(at-t.base) / (t.memory.slot * t.memory.chunk) }

// Kick hands over what was put and has the kernel send it, without waiting for
// room: see ErrFull.
func (t *Tx) Kick() error { return t.kick(wake) }

// KickAtOnce is Kick without telling the scheduler, which takes a system call of
// more than 20 µs for one that blocks, and gives the processor to another thread:
// for senders that have a thread of their own and nothing else to do. The collector
// waits for it, for as long as the kernel takes over what was put.
func (t *Tx) KickAtOnce() error { return t.kick(wakeAtOnce) }

// wake is send(2) of nothing: the kernel looks at the ring.
func wake(fd int) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

func wakeAtOnce(fd int) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

func (t *Tx) kick(wake func(fd int) unix.Errno) error {
	before := t.ring.taken()
	idle := before == t.ring.ours // the driver may not be looking at a ring that was empty
	if t.staged > 0 {
		t.ring.produce(t.staged)
		t.staged = 0
	}
	if t.zeroCopy && !idle && !t.ring.needsWakeup() && t.ring.free(1) > 0 {
		return nil
	}
	for {
		errno := wake(t.fd)
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
			continue
		case unix.EAGAIN, unix.EBUSY: // as much as one call does, or no room behind
			after := t.ring.taken()
			if after == t.ring.ours {
				return nil
			}
			if after != before {
				before = after
				continue
			}
			t.Reap() // the completion ring is what the kernel may have no room in
			return ErrFull
		}
		return errno
	}
}

// Reap takes back the slots of frames that have left and returns how many there
// were.
func (t *Tx) Reap() int {
	n := t.done.ready(1)
	frames := 0
	for k := range n {
		at := *t.done.slot(k)
		if t.memory.slot > 1 {
			slot := t.slotOf(at)
			if t.pending[slot]--; t.pending[slot] > 0 {
				continue
			}
			at = t.base + uint64(slot*t.memory.slot*t.memory.chunk)
		}
		if at != t.same {
			t.free = append(t.free, at)
		}
		frames++
	}
	if n > 0 {
		t.done.skip(n)
		t.done.publish()
		t.left += uint64(frames)
	}
	return frames
}

// Handed is how many frames have been put since the socket was opened.
func (t *Tx) Handed() uint64 { return t.handed }

// Left is how many of them have left: the kernel has given their memory back.
func (t *Tx) Left() uint64 {
	t.Reap()
	return t.left
}

// Invalid is how many descriptors the kernel refused: their frames do not leave.
func (t *Tx) Invalid() uint64 {
	c, err := statistics(t.fd)
	if err != nil {
		return 0
	}
	return c.Tx_invalid_descs
}

// Wait waits until the kernel may take more, or the timeout is over.
func (t *Tx) Wait(timeout time.Duration) error {
	t.poll[0] = unix.PollFd{Fd: int32(t.fd), Events: unix.POLLOUT}
	return wait(t.poll[:], timeout)
}

// room reports whether a slot may be free. It may run beside the owner.
func (t *Tx) room() bool { return t.done.waiting() }

func (t *Tx) close() error {
	t.ring.unmap()
	t.done.unmap()
	return closeHalf(&t.fd)
}
