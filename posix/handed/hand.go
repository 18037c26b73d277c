package handed

import (
	"net/netip"

	"loam/posix/file"
	"loam/posix/inet"
	"loam/posix/socket"
)

// Connections accepted by the host and handed to the program. Each enters the accept queue of the
// socket that listens at its destination. The host has completed the handshake by then, so the client
// cannot be refused: without a listener the connection is reset, and a full queue delays it.

// Way is a pair of addresses that the program sees for a connection of the host: At is the local address, and From the
// address of the client.
type Way struct{ At, From netip.AddrPort }

// offered is a connection of the host that waits for accept(2) of the program.
type offered struct {
	host HostTCP
	Way
}

// Hand passes a connection of the host to the program. It tries the ways in order, and uses the first whose local address
// has a listening socket. With TCP_DEFER_ACCEPT, the socket receives the connection when data arrives or the time is over.
// Without a listener the connection is reset. Hand becomes the owner of c.
func Hand(n *inet.Network, c HostTCP, ways ...Way) {
	for _, w := range ways {
		if s := n.Listening(w.At, w.From); s != nil {
			withhold(c, s.DeferAccept(), func(c HostTCP) { s.Offer(&offered{c, w}) })
			return
		}
	}
	c.Close(true, true)
}

// Reset implements inet.Offered.
func (c *offered) Reset(refused bool) { c.host.Close(true, refused) }

// Accept implements inet.Offered. The connection inherits the options set on the listening socket.
func (c *offered) Accept(l *inet.TCPSocket) socket.Socket {
	h := newHostTCP(l, c.host, l.LocalName(c.At), l.LocalName(c.From))
	h.inherited = l.Given()
	for _, o := range h.inherited {
		if hostOptions[o.OptionName] {
			h.SetOption(o.Level, o.Name, o.Value)
		}
	}
	return h
}

// BeginPolling records that the Go runtime's poller waits for the connection on behalf of the descriptor with watch w. It
// returns false if the poller already waits for the connection on behalf of another descriptor.
func (s *Socket) BeginPolling(w *file.Watch) bool { return s.polled.CompareAndSwap(nil, w) }

// PolledBy returns the watch passed to BeginPolling, or nil.
func (s *Socket) PolledBy() *file.Watch { return s.polled.Load() }

// Report makes the poller count its notifications for this connection in the Arrivals a.
// It returns the host's descriptor.
func (s *Socket) Report(a *Arrivals) int {
	a.Word.Store(0)
	s.input.watch(a)
	return s.host.Descriptor()
}

// EndPolling undoes Report and BeginPolling. It returns the host's descriptor.
func (s *Socket) EndPolling() int {
	s.input.watch(nil)
	s.polled.Store(nil)
	return s.host.Descriptor()
}

// AcceptedFrom returns the address of the peer, which may have closed the connection since.
func (s *Socket) AcceptedFrom() socket.Address { return s.from }
