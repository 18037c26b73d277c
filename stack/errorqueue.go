package stack

import (
	"net/netip"

	"loam/stack/icmp"
)

// DatagramError describes a datagram that was not delivered (IP_RECVERR of ip(7), IPV6_RECVERR of ipv6(7)).
type DatagramError struct {
	Err        error          // the error for the program
	Local      bool           // the error was detected by this host; otherwise an ICMP message reported it
	Type, Code uint8          // type and code of the ICMP message
	Info       uint32         // the MTU if the datagram was too long, otherwise the pointer or other data of the message
	To         netip.AddrPort // destination of the datagram that was not delivered
	Message    Datagram       // describes the ICMP message; From is its sender
	Payload    []byte         // the part of the datagram quoted in the message, and any bytes after it

	Extensions icmp.Extensions // extensions of the message, after the quoted part of Payload: see UDPOptions.ReportExtensions
}

// charge returns how much an error counts against the receive buffer, in bytes.
func (e *DatagramError) charge() int {
	const fixed = 512 // approximately Linux's charge in addition to the payload
	return fixed + len(e.Payload)
}

// queuesErrors reports whether errors about datagrams to dst are queued.
func (o *UDPOptions) queuesErrors(dst netip.Addr) bool {
	if dst.Is6() {
		return o.QueueErrors6
	}
	return o.QueueErrors
}

// reportsExtensions reports whether DatagramError.Extensions is set in errors about datagrams to dst.
func (o *UDPOptions) reportsExtensions(dst netip.Addr) bool {
	if dst.Is6() {
		return o.ReportExtensions6
	}
	return o.ReportExtensions
}

// TakeError removes and returns the oldest queued error. As on Linux, the pending error
// (Err) then becomes the next queued error from ICMP, or none.
func (c *datagramSocket) TakeError() (DatagramError, bool) {
	e, next, ok := c.errors.Take()
	switch {
	case next != nil && !next.Local:
		c.failure.Store(&next.Err)
	case ok && !e.Local:
		c.failure.Store(nil)
	}
	return e, ok
}

// keepError queues an error for TakeError.
func (c *datagramSocket) keepError(e DatagramError) {
	c.errors.Put(e, e.charge(), c.queue.Limit())
}

// tooLong queues an error about a packet to remote that exceeds the path MTU, if the program has enabled that.
func (c *datagramSocket) tooLong(o *UDPOptions, remote netip.AddrPort, mtu int) {
	if !o.queuesErrors(remote.Addr()) {
		return
	}
	if remote.Addr().Is4() { // for IPv4, Linux reports the port of the connected peer
		remote = netip.AddrPortFrom(remote.Addr(), c.RemoteAddrPort().Port())
	}
	c.keepError(DatagramError{Err: ErrMessageTooLong, Local: true, Info: uint32(mtu), To: remote})
	c.reportEvents(Error)
}

// fit is ipHeader.fit for a packet to remote. An error is also queued for the program.
func (c *datagramSocket) fit(h *ipHeader, p *path, o *UDPOptions, remote netip.AddrPort, payload int) error {
	err := h.fit(p, o.discovery(h.dst), payload)
	if err == nil && o.Whole6 && h.dst.Is6() && h.length()+payload > p.mtu {
		err = ErrMessageTooLong
	}
	if err != nil && o.Whole6 && o.ReportPathMTU && h.dst.Is6() {
		c.pathReport.Store(&PathMTU{remote.Addr(), p.mtu})
	}
	if err != nil {
		c.tooLong(o, remote, p.mtu)
	}
	return err
}
