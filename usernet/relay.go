package usernet

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"loam/stack"
)

// A relay joins a TCP connection of the guest and a TCP connection of the host, so that both ends see one connection:
//
//   - Each direction has its own goroutine, which holds at most one buffer. If one end stops reading, the TCP windows
//     make the other end stop writing. Small amounts from the guest are forwarded without the goroutine (handnow.go).
//   - The end of a stream (FIN) is forwarded after the stream's last byte. The other direction stays open.
//   - A reset of one connection resets the other.
//
// Like every proxy, the gateway acknowledges bytes before the other end has them. If it
// cannot deliver bytes that it has acknowledged, it resets the connection; it never loses
// them silently.
type relay struct {
	guest   *stack.TCPConn
	host    *net.TCPConn
	tally   *tally
	linger  time.Duration
	window  window
	out     handover     // state of the stream from the guest to the host
	bell    bell         // wakes the goroutine fromGuest at events of the guest's connection
	ended   atomic.Int32 // number of streams that have ended, 0 to 2
	aborted atomic.Bool
	over    chan struct{} // closed when the relay ends: by the second call of the method end, or by the method abort
	once    sync.Once     // makes sure that over is closed once

	handedOver atomic.Bool // the host's socket has accepted the guest's whole stream, including its end
}

// guestOptions returns the options of the gateway's connection to the guest. window is the size of its buffers, see
// memory.go. Keep-alive detects that the guest no longer has the connection.
func guestOptions(window int) stack.TCPOptions {
	return stack.TCPOptions{
		ReceiveBuffer: window, SendBuffer: window,
		KeepAlive: true, KeepAliveIdle: time.Minute, KeepAliveInterval: 15 * time.Second, KeepAliveCount: 4,
	}
}

// relay forwards data between two connections, and owns both. It returns when both are closed.
func (g *Gateway) relay(guest *stack.TCPConn, host *net.TCPConn) {
	r := &relay{
		guest: guest, host: host, tally: &g.tally, linger: g.config.linger,
		bell: newBell(), over: make(chan struct{}),
	}
	g.relays.Store(r, nil)
	defer g.relays.Delete(r)
	g.memory.join(r)
	defer g.memory.leave(r)
	if err := r.out.init(host); err != nil {
		reset(host)
		guest.Abort()
		return
	}
	guest.Watch(r.onEvents)
	stop := context.AfterFunc(g.ctx, r.abort)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(r.fromHost)
	r.fromGuest()
	wg.Wait()
	r.finish()
}

// fromGuest moves the guest's stream to the host. After the end of that stream, it waits for a reset while the stream
// from the host is open.
func (r *relay) fromGuest() {
	for {
		switch err := r.moveFromGuest(); {
		case err == stack.ErrWouldBlock:
			<-r.bell
			continue
		case err != io.EOF || r.host.CloseWrite() != nil:
			r.abort()
			return
		}
		break
	}
	r.handedOver.Store(true)
	r.end()
	for {
		select {
		case <-r.over:
			return
		case <-r.bell:
			if r.guest.Err() != nil {
				r.abort()
				return
			}
		}
	}
}

// moveFromGuest moves available data. Its error is never nil: ErrWouldBlock means that there is no more data for now.
func (r *relay) moveFromGuest() error {
	r.out.mu.Lock()
	defer r.out.mu.Unlock()
	if err := r.out.finish(r.host, r.tally); err != nil {
		return err
	}
	var buf room
	buf.take(r.window.little())
	defer buf.give()
	for {
		n, err := r.guest.TryRead(buf.bytes())
		if n > 0 {
			if _, err := r.host.Write(buf.bytes()[:n]); err != nil {
				return err
			}
			r.tally.add(TCPBytesOut, n)
		}
		if err != nil {
			return err
		}
	}
}

// fromHost moves the host's stream to the guest. After the end of that stream, it waits for a reset while the stream
// from the guest is open.
func (r *relay) fromHost() {
	in, err := newHostReader(r.host)
	if err == nil {
		in.little = r.window.little
		err = r.moveFromHost(in)
	}
	if err == io.EOF {
		err = r.endGuest()
	}
	if err != nil {
		r.abort()
		return
	}
	r.end()
	if in.waitReset(); r.ended.Load() < 2 {
		r.abort()
	}
}

// moveFromHost moves data until the stream ends, and returns io.EOF at its end.
func (r *relay) moveFromHost(in *hostReader) error {
	defer in.release()
	for {
		p, err := in.read()
		if err != nil {
			return err
		}
		if len(p) == 0 {
			return io.EOF
		}
		if _, err := r.guest.Write(p); err != nil {
			return err
		}
		r.tally.add(TCPBytesIn, len(p))
	}
}

// endGuest forwards the end of the host's stream to the guest. The guest may not have acknowledged the handshake yet;
// CloseWrite would then fail. So endGuest first calls Write, which waits for the handshake.
func (r *relay) endGuest() error {
	if _, err := r.guest.Write(nil); err != nil {
		return err
	}
	return r.guest.CloseWrite()
}

// end is called once for each of the two streams when it has ended. The second call wakes the goroutines that wait for
// a reset.
func (r *relay) end() {
	if r.ended.Add(1) == 2 {
		r.once.Do(func() { close(r.over) })
		r.host.SetReadDeadline(time.Unix(1, 0))
	}
}

// abort resets both connections and wakes the goroutines that wait for them.
func (r *relay) abort() {
	if r.aborted.Swap(true) {
		return
	}
	r.tally.count(TCPResets)
	r.once.Do(func() { close(r.over) })
	r.guest.Abort()
	if r.handedOver.Load() {
		r.host.Close() // no reset: it would discard data that the host's kernel has not sent yet
	} else {
		reset(r.host)
	}
}

// reset closes a host connection with a reset.
func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

// finish closes both connections after both streams have ended. Bytes that the guest has not acknowledged still use
// memory. So the relay counts against the connection limit until the guest has acknowledged them, or until the
// duration in the field linger has passed. The host's kernel completes the connection on the host's side.
func (r *relay) finish() {
	r.host.Close()
	patience := time.NewTimer(r.linger)
	defer patience.Stop()
	for !r.guest.Drained() && !r.aborted.Load() {
		select {
		case <-r.bell:
		case <-patience.C:
			r.tally.count(TCPLingered)
			r.guest.Abort()
			return
		}
	}
	r.guest.Close()
}
