package usernet

import (
	"errors"
	"sync/atomic"
	"syscall"
	"time"

	"loam/stack"
)

// A flow is a UDP conversation: between an address of the guest and one of the
// world, whoever began it. On the guest's side it is a socket of the gateway's
// stack that is connected to the guest; what stands on the host's side differs
// (udp.go, publishudp.go).
type flow struct {
	key   flowKey
	guest *stack.UDPConn
	host  hostPeer
	bell  bell // of guest

	used atomic.Int64  // time of the last datagram, for the table
	seen time.Duration // belongs to the table
}

// hostPeer is the far end of a flow as the host sees it.
type hostPeer interface {
	send(p []byte) error
	close()
}

// guestDatagrams bounds, in bytes of buffers, what waits in a flow for the host
// or for the guest: both are quick to take datagrams, as a rule, and what does
// not fit is lost as on any network.
const guestDatagrams = 256 << 10

func newFlow(k flowKey, guest *stack.UDPConn, host hostPeer) *flow {
	guest.SetOptions(func(o *stack.UDPOptions) { o.ReceiveBuffer, o.SendBuffer = guestDatagrams, guestDatagrams })
	f := &flow{key: k, guest: guest, host: host, bell: newBell()}
	guest.Watch(f.bell.ring)
	return f
}

// close ends a flow; its goroutines end soon.
func (f *flow) close() {
	f.guest.Close()
	f.host.close()
}

// runFromGuest moves the guest's datagrams to the host until the flow is closed.
func (f *flow) runFromGuest(g *Gateway) {
	for f.moveFromGuest(g) {
		<-f.bell
	}
}

// moveFromGuest moves what there is; it returns false when the flow is closed.
func (f *flow) moveFromGuest(g *Gateway) bool {
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	for {
		n, _, err := f.guest.TryReadFrom(buf[:])
		switch err {
		case nil:
			f.used.Store(int64(g.now()))
			err := f.host.send(buf[:n])
			if errors.Is(err, syscall.ECONNREFUSED) { // an earlier one was: this one has not been sent
				f.refused(g, err)
				err = f.host.send(buf[:n])
			}
			g.countSent(err, UDPOut)
		case stack.ErrWouldBlock:
			return true
		case stack.ErrClosed:
			return false
		default: // the guest has no such port: an answer of the host came too late
			g.tally.count(UDPRefused)
		}
	}
}

// sendToGuest sends a datagram, and waits while the link is full.
func (f *flow) sendToGuest(g *Gateway, p []byte) {
	f.used.Store(int64(g.now()))
	_, err := f.guest.Write(p)
	if errors.Is(err, syscall.ECONNREFUSED) { // an earlier one was: this one has not been sent
		g.tally.count(UDPRefused)
		_, err = f.guest.Write(p)
	}
	g.countSent(err, UDPIn)
}

// countSent counts what became of a datagram.
func (g *Gateway) countSent(err error, passed Counter) {
	if err != nil {
		passed = UDPDropped
	}
	g.tally.count(passed)
}
