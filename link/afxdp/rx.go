//go:build linux

package afxdp

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Rx is the receiving half of a socket. Only one goroutine at a time may use it. Each of its chunks
// is in one of three places: in the fill ring, for the kernel to write to; in the rx ring, with a
// frame; or held here, until frames are returned to the kernel.
type Rx struct {
	fd     int
	memory *memory
	ring   ring[unix.XDPDesc]
	fill   ring[uint64]
	held   uint32 // descriptors read and not yet returned to the kernel
	joined []byte // buffer for a frame of several pieces
	busy   bool
	poll   [1]unix.PollFd
}

// giveBackEvery is the number of frames after which memory is returned to the kernel at the latest,
// while more frames arrive.
const giveBackEvery = 64

func (r *Rx) mapRings(at unix.XDPMmapOffsets, n int) (err error) {
	if r.ring, err = mapRing[unix.XDPDesc](r.fd, unix.XDP_PGOFF_RX_RING, at.Rx, n); err != nil {
		return err
	}
	r.fill, err = mapRing[uint64](r.fd, unix.XDP_UMEM_PGOFF_FILL_RING, at.Fr, n)
	return err
}

// fillAll gives all receive chunks of the k-th socket of m to the kernel.
func (r *Rx) fillAll(m *memory, k int) {
	r.memory = m
	for i := range m.rxFrames {
		*r.fill.slot(uint32(i)) = m.rxBase(k) + uint64(i*m.chunk)
	}
	r.fill.produce(uint32(m.rxFrames))
}

// Next returns the next received frame. It does not block; ok is false if there is none. The frame
// may be read and written until the next call of Next.
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

// join copies the pieces of a frame into one buffer. The kernel publishes all pieces of a frame at
// once.
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

// giveBack returns the memory of frames that have been read to the kernel.
func (r *Rx) giveBack() {
	if r.held == 0 {
		return
	}
	for k := range r.held {
		at := r.ring.slot(k - r.held).Addr // slots before the program's index keep the addresses of frames that were read
		*r.fill.slot(k) = at &^ uint64(r.memory.chunk-1)
	}
	r.ring.publish()
	r.fill.produce(r.held)
	r.held = 0
	if r.fill.needsWakeup() {
		r.nudge()
	}
}

// nudge makes the driver continue with the fill ring. With busy polling, it polls the device.
func (r *Rx) nudge() {
	unix.Syscall6(unix.SYS_RECVFROM, uintptr(r.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0) // unix.Recvfrom allocates
}

// Wait blocks until a frame may have arrived or the timeout expires. With busy polling, it polls
// the device first.
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

// wait waits for an event or the timeout.
func wait(fds []unix.PollFd, timeout time.Duration) error {
	t := unix.NsecToTimespec(timeout.Nanoseconds())
	_, err := unix.Ppoll(fds, &t, nil)
	if err == unix.EINTR {
		return nil
	}
	return os.NewSyscallError("ppoll", err)
}
