package usernet

import (
	"errors"
	"sync/atomic"
	"syscall"
	"time"

	"loam/stack"
)

// A flow is a UDP conversation between an address of the guest and an address outside. Either side may begin it. Each
// flow has a socket of the gateway's stack that is connected to the guest. For the host's side, see udp.go and
// publishudp.go.
type flow struct {
	key   flowKey
	guest *stack.UDPConn
	host  hostPeer
	bell  bell // notified when the socket in the field guest may be readable

	used atomic.Int64  // Gateway.now at the last datagram; the flow table reads it
	seen time.Duration // value of used at the table's last inspection; owned by the table
}

// hostPeer is the host's side of a flow.
type hostPeer interface {
	send(p []byte) error
	close()
}

// guestDatagrams is the size of the receive buffer and of the send buffer of a flow's socket on the guest's side, in
// bytes; each datagram counts with the size of its frame's buffer. Both sides normally read fast; excess datagrams are
// dropped, as on any network.
const guestDatagrams = 256 << 10

// newFlow returns a flow that takes ownership of both sockets. The flow is not in a flowTable yet.
func newFlow(k flowKey, guest *stack.UDPConn, host hostPeer) *flow {
	guest.SetOptions(func(o *stack.UDPOptions) { o.ReceiveBuffer, o.SendBuffer = guestDatagrams, guestDatagrams })
	f := &flow{key: k, guest: guest, host: host, bell: newBell()}
	guest.Watch(f.bell.ring)
	return f
}

// close closes both sockets of the flow. Its goroutines then end.
func (f *flow) close() {
	f.guest.Close()
	f.host.close()
}

// runFromGuest forwards datagrams of the guest to the host until the flow is closed.
func (f *flow) runFromGuest(g *Gateway) {
	for f.moveFromGuest(g) {
		<-f.bell
	}
}

// moveFromGuest forwards the datagrams that are available. It returns false if the flow
// is closed.
func (f *flow) moveFromGuest(g *Gateway) bool {
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	for {
		n, _, err := f.guest.TryReadFrom(buf[:])
		switch err {
		case nil:
			f.used.Store(int64(g.now()))
			err := f.host.send(buf[:n])
			if errors.Is(err, syscall.ECONNREFUSED) { // this error reports an earlier datagram; the current one was not sent
				f.refused(g, err)
				err = f.host.send(buf[:n])
			}
			g.countSent(err, UDPOut)
		case stack.ErrWouldBlock:
			return true
		case stack.ErrClosed:
			return false
		default: // the guest's port is closed: a reply came too late
			g.tally.count(UDPRefused)
		}
	}
}

// sendToGuest sends a datagram to the guest. It blocks while the link is full.
func (f *flow) sendToGuest(g *Gateway, p []byte) {
	f.used.Store(int64(g.now()))
	_, err := f.guest.Write(p)
	if errors.Is(err, syscall.ECONNREFUSED) { // this error reports an earlier datagram; the current one was not sent
		g.tally.count(UDPRefused)
		_, err = f.guest.Write(p)
	}
	g.countSent(err, UDPIn)
}

// countSent adds one to the given counter, or to UDPDropped if err is not nil.
func (g *Gateway) countSent(err error, passed Counter) {
	if err != nil {
		passed = UDPDropped
	}
	g.tally.count(passed)
}
