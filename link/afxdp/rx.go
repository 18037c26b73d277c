//go:build linux

package afxdp

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Rx is the receiving half of a socket. Every chunk of its part of the memory is
// either in the fill ring, for the kernel to write to, or in the rx ring with a
// frame in it, or held here until the next frames are looked for.
type Rx struct {
	fd     int
	memory *memory
	ring   ring[unix.XDPDesc]
	fill   ring[uint64]
	held   uint32 // descriptors read and not yet given back
	joined []byte // a frame of several pieces
	busy   bool
	poll   [1]unix.PollFd
}

// giveBackEvery is after how many frames memory goes back to the kernel at the
// latest, while there are more.
const giveBackEvery = 64

func (r *Rx) mapRings(at unix.XDPMmapOffsets, n int) (err error) {
	if r.ring, err = mapRing[unix.XDPDesc](r.fd, unix.XDP_PGOFF_RX_RING, at.Rx, n); err != nil {
		return err
	}
	r.fill, err = mapRing[uint64](r.fd, unix.XDP_UMEM_PGOFF_FILL_RING, at.Fr, n)
	return err
}

// fillAll gives the kernel all receive chunks of the k-th socket of m.
func (r *Rx) fillAll(m *memory, k int) {
	r.memory = m
	for i := range m.rxFrames {
		*r.fill.slot(uint32(i)) = m.rxBase(k) + uint64(i*m.chunk)
	}
	r.fill.produce(uint32(m.rxFrames))
}

// Next returns the next frame that is there, without waiting. It may be read and
// written until the next call of Next.
func (r *Rx) Next() (frame []byte, ok bool) {
	if r.held >= giveBackEvery {
		r.giveBack()
	}
	if r.ring.ready(1) == 0 {
		r.giveBack()
		return nil, false
	}
	d := r.ring.slot(0)
	if d.Options&unix.XDP_PKT_CONTD != 0 {
		return r.join()
	}
	r.ring.skip(1)
	r.held++
	return r.memory.bytes[d.Addr:][:d.Len], true
}

// join copies the pieces of a frame together. The kernel publishes a frame whole.
func (r *Rx) join() (frame []byte, ok bool) {
	r.joined = r.joined[:0]
	for more := true; more; {
		if r.ring.ready(1) == 0 {
			return nil, false
		}
		d := r.ring.slot(0)
		r.joined = append(r.joined, r.memory.bytes[d.Addr:][:d.Len]...)
		more = d.Options&unix.XDP_PKT_CONTD != 0
		r.ring.skip(1)
		r.held++
	}
	return r.joined, true
}

// giveBack returns the memory of frames that have been looked at.
func (r *Rx) giveBack() {
	if r.held == 0 {
		return
	}
	for k := range r.held {
		at := r.ring.slot(k - r.held).Addr // before our index
		*r.fill.slot(k) = at &^ uint64(r.memory.chunk-1)
	}
	r.ring.publish()
	r.fill.produce(r.held)
	r.held = 0
	if r.fill.needsWakeup() {
		r.nudge()
	}
}

// nudge has the driver go on, or look at the device if this socket polls it.
func (r *Rx) nudge() {
	unix.Syscall6(unix.SYS_RECVFROM, uintptr(r.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0) // unix.Recvfrom allocates
}

// Wait waits until there may be a frame or the timeout is over. A socket that
// polls looks at the device first.
func (r *Rx) Wait(timeout time.Duration) error {
	if r.busy {
		r.nudge()
		if r.ring.ready(1) > 0 {
			return nil
		}
	}
	r.poll[0] = unix.PollFd{Fd: int32(r.fd), Events: unix.POLLIN}
	return wait(r.poll[:], timeout)
}

func (r *Rx) close() error {
	r.ring.unmap()
	r.fill.unmap()
	return closeHalf(&r.fd)
}

// wait waits for an event.
func wait(fds []unix.PollFd, timeout time.Duration) error {
	t := unix.NsecToTimespec(timeout.Nanoseconds())
	_, err := unix.Ppoll(fds, &t, nil)
	if err == unix.EINTR {
		return nil
	}
	return os.NewSyscallError("ppoll", err)
}
