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

// Way is a pair of addresses that a connection of the host may have in the program: from the client
// address From to the local address At.
type Way struct{ At, From netip.AddrPort }

// offered is a connection waiting to be accepted.
type offered struct {
	host HostTCP
	Way
}

// Hand passes a connection of the host to the program, by the first way that leads to a listening
// socket. With TCP_DEFER_ACCEPT, the socket receives it when data arrives or the time is over. Without
// a listener the connection is reset. Hand takes over c.
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

// BeginPolling records that the Go runtime's poller waits for the connection through the descriptor whose watch is w. It
// returns false if the poller already waits for the connection through another descriptor.
func (s *Socket) BeginPolling(w *file.Watch) bool { return s.polled.CompareAndSwap(nil, w) }

// PolledBy returns the watch passed to beginPolling, or nil.
func (s *Socket) PolledBy() *file.Watch { return s.polled.Load() }

// Report makes the poller record its events in a from now on. It returns the host's descriptor.
func (s *Socket) Report(a *Arrivals) int {
	a.Word.Store(0)
	s.input.watch(a)
	return s.host.Descriptor()
}

// EndPolling undoes report and beginPolling. It returns the host's descriptor.
func (s *Socket) EndPolling() int {
	s.input.watch(nil)
	s.polled.Store(nil)
	return s.host.Descriptor()
}

// AcceptedFrom returns the address of the peer, which may have closed the connection since.
func (s *Socket) AcceptedFrom() socket.Address { return s.from }
