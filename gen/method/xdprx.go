//go:build linux

package method

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"loam/link/afxdp"
)

// xdpReceiver is the receiving half of the method xdp. An XDP program takes matching frames away from the kernel and
// leaves all other frames to it. AF_XDP does not report the times at which frames were received.
type xdpReceiver struct {
	port     *xdpPort
	rx       *afxdp.Rx
	listener int    // descriptor of the packet socket that keeps promiscuous mode enabled, or -1
	before   uint64 // number of drops that an earlier receiver on the same socket had

	mu     sync.Mutex // guards the fields below: Drops may be called during Close and after it
	closed bool
	drops  uint64 // value at the last call of Drops
}

// listenXDP opens a receiver for the method xdp on one queue. The first receiver of an interface attaches the XDP
// program.
func listenXDP(c Config) (Receiver, error) {
	c = c.WithDefaults()
	p, err := takePort(c, false)
	if err != nil {
		return nil, err
	}
	r := &xdpReceiver{port: p, rx: &p.socket.Rx, listener: -1, before: p.socket.Drops()}
	for more := true; more; { // drop frames that have arrived for an earlier receiver
		_, more = r.rx.Next()
	}
	if c.Promiscuous {
		r.listener, err = afxdp.Promiscuous(p.key.index)
	}
	if err == nil {
		err = p.steer(c.Match)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Receive implements Receiver.
func (r *xdpReceiver) Receive(timeout time.Duration, got func(frame []byte, at int64)) (count int, err error) {
	// Bounds one call: if the ring is filled as fast as it is emptied, the call would otherwise never return.
	const most = 1 << 14
	frame, ok := r.rx.Next()
	if !ok && timeout > 0 {
		if err := r.rx.Wait(timeout); err != nil {
			return 0, err
		}
		frame, ok = r.rx.Next()
	}
	for ; ok; frame, ok = r.rx.Next() {
		got(frame, 0)
		if count++; count == most {
			break
		}
	}
	return count, nil
}

// Drops implements Receiver.
func (r *xdpReceiver) Drops() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.drops = r.port.socket.Drops() - r.before
	}
	return r.drops
}

// Close implements Receiver.
func (r *xdpReceiver) Close() error {
	r.Drops()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	err := r.port.unsteer()
	if r.listener >= 0 {
		err = errors.Join(err, os.NewSyscallError("close", unix.Close(r.listener)))
	}
	return errors.Join(err, r.port.leave(&r.port.receives))
}
