//go:build linux

package afxdp

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Tx is the sending half of a socket. Only one goroutine at a time may use it. A frame stays where
// it was written until it has left. Slot returns room for a frame, Put sets its length, and Kick
// hands over the frames that were put.
//
// Free slots are kept on a stack, not in a circle. The slot used last is used next, while it is
// still in the cache. In copy mode a batch has left when Kick returns, so the same few kilobytes
// are used again and again; a circle would touch megabytes.
//
// Kick makes a system call unless the driver has stated that it polls the ring
// (XDP_USE_NEED_WAKEUP). It also makes the call if the ring is full, or was empty, so that the
// driver and the program never wait for each other. In copy mode the call does the work: it creates
// a kernel packet from each frame and passes it to the driver.
type Tx struct {
	fd       int
	memory   *memory
	ring     ring[unix.XDPDesc]
	done     ring[uint64] // ring of the frames that the kernel has sent
	zeroCopy bool

	base    uint64   // offset of this socket's part of the memory
	free    []uint64 // stack of the offsets of free slots; the top is the last
	same    uint64   // offset of the slot used by Repeat, which is never free; noSlot before the first Repeat
	pending []uint8  // per slot of several chunks: chunks that have not left
	staged  uint32   // number of descriptors that were put and not yet passed to the kernel
	handed  uint64   // number of frames that were put
	left    uint64   // number of frames that the kernel has sent
	poll    [1]unix.PollFd
}

// noSlot is the address of no slot.
const noSlot = ^uint64(0)

// ErrFull is the error of Kick if the kernel accepts no more frames for now. No frame is lost, and
// the next Kick continues.
var ErrFull = errors.New("afxdp: the kernel takes no more for now")

// mapRings maps the tx ring of this half, and the completion ring, which belongs to socket owner.
func (t *Tx) mapRings(owner int, at unix.XDPMmapOffsets, n int) (err error) {
	if t.ring, err = mapRing[unix.XDPDesc](t.fd, unix.XDP_PGOFF_TX_RING, at.Tx, n); err != nil {
		return err
	}
	t.done, err = mapRing[uint64](owner, unix.XDP_UMEM_PGOFF_COMPLETION_RING, at.Cr, n)
	return err
}

// ownAll puts all send slots of the k-th socket of m on the stack.
func (t *Tx) ownAll(m *memory, k int) {
	t.memory, t.base = m, m.txBase(k)
	t.free = make([]uint64, m.txSlots)
	t.pending = make([]uint8, m.txSlots)
	t.same = noSlot
	for i := range t.free {
		t.free[len(t.free)-1-i] = t.base + uint64(i*m.slot*m.chunk+m.stagger(i))
	}
}

// Slot returns the room for the next frame, or nil if all slots are in transmission. It contains
// the bytes of an earlier frame. Slot returns the same room until Put.
func (t *Tx) Slot() []byte {
	if (len(t.free) == 0 || t.places() == 0) && t.Reap() == 0 {
		return nil
	}
	at, m := t.free[len(t.free)-1], t.memory
	end := int(at)&^(m.chunk-1) + m.slot*m.chunk
	return m.bytes[at:end:end]
}

// places returns the number of further frames that the rings have room for.
func (t *Tx) places() int { return t.memory.txSlots - int(t.handed-t.left) }

// Repeat puts the same frame up to n times, as long as there is room, and returns how often. Every
// call must pass the same frame: it is written only once, to a slot reserved for it. All copies can
// share that memory because the kernel does not modify frames.
func (t *Tx) Repeat(frame []byte, n int) (put int) {
	if t.memory.multi() {
		for ; put < n; put++ { // a frame of several chunks is written again each time
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

// Put adds the slot that Slot returned to the tx ring as the next frame. n is the length of the
// frame in bytes, at least 1. The ring has a place for every chunk, so there is always room.
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

// putPieces puts a frame as several descriptors of one chunk each.
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

// Kick hands over the frames that were put and makes the kernel send them. It does not wait for
// room: see ErrFull.
func (t *Tx) Kick() error { return t.kick(wake) }

// KickAtOnce is Kick without notifying the Go scheduler. The scheduler treats a system call of more
// than 20 µs as blocked and gives the processor to another thread. KickAtOnce is for a sender with
// a thread of its own and nothing else to do. Garbage collection waits until the call returns.
func (t *Tx) KickAtOnce() error { return t.kick(wakeAtOnce) }

// wake makes the kernel process the ring: it calls send(2) without data.
func wake(fd int) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

func wakeAtOnce(fd int) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

// kick publishes the staged descriptors and calls the function wake unless the driver
// polls the ring. It repeats the call while the kernel makes progress, and returns
// ErrFull when it does not.
func (t *Tx) kick(wake func(fd int) unix.Errno) error {
	before := t.ring.taken()
	idle := before == t.ring.ours // the driver may not be polling a ring that was empty
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
		case unix.EAGAIN, unix.EBUSY: // the kernel has done as much as one call does, or the completion ring is full
			after := t.ring.taken()
			if after == t.ring.ours {
				return nil
			}
			if after != before {
				before = after
				continue
			}
			t.Reap() // the completion ring may be full
			return ErrFull
		}
		return errno
	}
}

// Reap takes back the slots of frames that have left, and returns the number of frames.
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

// Handed returns the number of frames put since the socket was opened.
func (t *Tx) Handed() uint64 { return t.handed }

// Left returns the number of frames that have left, which means that the kernel has returned their
// memory.
func (t *Tx) Left() uint64 {
	t.Reap()
	return t.left
}

// Invalid returns the number of descriptors that the kernel rejected. Their frames are not sent.
func (t *Tx) Invalid() uint64 {
	c, err := statistics(t.fd)
	if err != nil {
		return 0
	}
	return c.Tx_invalid_descs
}

// Wait blocks until the kernel may accept more frames, or the timeout expires.
func (t *Tx) Wait(timeout time.Duration) error {
	t.poll[0] = unix.PollFd{Fd: int32(t.fd), Events: unix.POLLOUT}
	return wait(t.poll[:], timeout)
}

// room reports whether a slot may be free. Any goroutine may call it.
func (t *Tx) room() bool { return t.done.waiting() }

func (t *Tx) close() error {
	t.ring.unmap()
	t.done.unmap()
	return closeHalf(&t.fd)
}
