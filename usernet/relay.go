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

// A relay joins a TCP connection of the guest to one of the host, so that to
// both ends they are one connection:
//
//   - bytes go both ways, each way in a goroutine of its own, which holds at most
//     one buffer: a reader that stops has the writer stop too, by way of the TCP
//     windows; little that the guest sends does not wait for it (handnow.go);
//   - the end of a stream (FIN) is passed on behind its last byte, and the other
//     direction goes on;
//   - a reset is passed on as a reset.
//
// The gateway acknowledges bytes before the other end has them, as every proxy
// does. What it has taken from one side and could not hand to the other is lost
// with a reset, never silently.
type relay struct {
	guest   *stack.TCPConn
	host    *net.TCPConn
	tally   *tally
	linger  time.Duration
	out     handover     // of the guest's stream
	bell    bell         // of the guest's connection
	ended   atomic.Int32 // streams that have ended, one or both
	aborted atomic.Bool
	over    chan struct{} // closed by who ends the relay: the second stream to end, or abort
	once    sync.Once     // guards closing over

	handedOver atomic.Bool // all of the guest's stream, to its end, is with the host
}

// guestOptions are those of the gateway's end of a connection with the guest.
// The link is short, so that half a megabyte is more than its bandwidth-delay
// product by far; and since the guest decides how many connections there are,
// what each may hold is fixed. Keep-alive finds guests that forgot a connection.
func guestOptions() stack.TCPOptions {
	const window = 2048 << 10
	return stack.TCPOptions{
		ReceiveBuffer: window, SendBuffer: window,
		KeepAlive: true, KeepAliveIdle: time.Minute, KeepAliveInterval: 15 * time.Second, KeepAliveCount: 4,
	}
}

// relay owns both connections and returns when both are closed.
func (g *Gateway) relay(guest *stack.TCPConn, host *net.TCPConn) {
	r := &relay{
		guest: guest, host: host, tally: &g.tally, linger: g.config.linger,
		bell: newBell(), over: make(chan struct{}),
	}
	g.relays.Store(r, nil)
	defer g.relays.Delete(r)
	if err := r.out.init(host); err != nil {
		reset(host)
		guest.Abort()
		return
	}
	guest.Watch(r.hear)
	stop := context.AfterFunc(g.ctx, r.abort)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(r.fromHost)
	r.fromGuest()
	wg.Wait()
	r.finish()
}

// fromGuest moves the guest's stream to the host, and then stays to see a reset
// as long as the other stream goes on.
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

// moveFromGuest moves what there is. It always returns an error: ErrWouldBlock
// when that was all for now.
func (r *relay) moveFromGuest() error {
	r.out.mu.Lock()
	defer r.out.mu.Unlock()
	if err := r.out.finish(r.host, r.tally); err != nil {
		return err
	}
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	for {
		n, err := r.guest.TryRead(buf[:])
		if n > 0 {
			if _, err := r.host.Write(buf[:n]); err != nil {
				return err
			}
			r.tally.add(TCPBytesOut, n)
		}
		if err != nil {
			return err
		}
	}
}

// fromHost moves the host's stream to the guest, and then stays to see a reset
// as long as the other stream goes on.
func (r *relay) fromHost() {
	in, err := newHostReader(r.host)
	if err == nil {
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

// moveFromHost returns io.EOF at the end of the stream.
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

// endGuest passes on the end of the host's stream. That may come before the
// guest has acknowledged the handshake, and a connection cannot be half closed
// that is not one yet; Write waits for it.
func (r *relay) endGuest() error {
	if _, err := r.guest.Write(nil); err != nil {
		return err
	}
	return r.guest.CloseWrite()
}

// end is called once for each stream, when it has ended. The second time it
// wakes whoever waits for a reset that does not matter any more.
func (r *relay) end() {
	if r.ended.Add(1) == 2 {
		r.once.Do(func() { close(r.over) })
		r.host.SetReadDeadline(time.Unix(1, 0))
	}
}

// abort resets both connections; whoever waits for one of them wakes up.
func (r *relay) abort() {
	if r.aborted.Swap(true) {
		return
	}
	r.tally.count(TCPResets)
	r.once.Do(func() { close(r.over) })
	r.guest.Abort()
	if r.handedOver.Load() {
		r.host.Close() // a reset would take back what the host's kernel has yet to send
	} else {
		reset(r.host)
	}
}

// reset ends a connection of the host with a reset.
func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

// finish closes both connections after their streams have ended. What the guest
// has not acknowledged yet is memory that it holds, so the relay keeps its place
// among the connections until that is gone, and loses patience at last. Of the
// host's side the kernel takes care.
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
