package usernet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// Port forwards: host sockets on which the gateway listens for the guest. All sockets are bound before anything else is
// started. So if a port is in use, New returns one clear error and nothing stays open.

// published holds the host sockets of all forwards.
type published struct {
	tcp []publishedTCP
	udp []publishedUDP
}

// bindForwards binds all forwards. If the host has selected a port, it sets the port in list. On error, nothing stays
// bound.
func bindForwards(list []Forward) (*published, error) {
	p := new(published)
	for i := range list {
		if err := p.bindForward(&list[i]); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

// bindForward binds one forward. If no host address was given, it binds both loopback
// addresses.
func (p *published) bindForward(f *Forward) error {
	chosen := f.Host.Port() != 0
	if err := p.bind(f); err != nil {
		return forwardError(f, err, f.loopback && canBind(*f, hostLoopback6))
	}
	if !f.loopback {
		return nil
	}
	six := *f
	six.Host = netip.AddrPortFrom(hostLoopback6, f.Host.Port())
	if err := p.bindLoopback6(six, chosen); err != nil {
		return forwardError(&six, err, true) // true: we have bound the IPv4 address, so it is free if the user gives it alone
	}
	return nil
}

// canBind reports whether a forward could be bound to another host address.
func canBind(f Forward, address netip.Addr) bool {
	f.Host = netip.AddrPortFrom(address, f.Host.Port())
	var p published
	defer p.close()
	return p.bind(&f) == nil
}

func (p *published) bind(f *Forward) error {
	if f.Proto == "tcp" {
		return p.bindTCP(f)
	}
	return p.bindUDP(f)
}

// bindLoopback6 binds a forward to ::1 if the host has that address. chosen means that the user has given the port. If
// not, it is no error that the port is in use at ::1.
func (p *published) bindLoopback6(f Forward, chosen bool) error {
	err := p.bind(&f)
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
		return nil
	case errors.Is(err, syscall.EADDRINUSE) && !chosen:
		return nil
	}
	return err
}

// bindTCP listens on a TCP port and sets f.Host to the actual address.
func (p *published) bindTCP(f *Forward) error {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(f.Host))
	if err != nil {
		return err
	}
	f.Host = withPort(f.Host, l.Addr().(*net.TCPAddr).Port)
	p.tcp = append(p.tcp, publishedTCP{listener: l, guest: f.Guest})
	return nil
}

// bindUDP binds a UDP socket and sets f.Host to the actual address.
func (p *published) bindUDP(f *Forward) error {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(f.Host))
	if err != nil {
		return err
	}
	f.Host = withPort(f.Host, c.LocalAddr().(*net.UDPAddr).Port)
	p.udp = append(p.udp, publishedUDP{conn: c, guest: f.Guest})
	return nil
}

func withPort(a netip.AddrPort, port int) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr(), uint16(port))
}

// close closes all listening sockets.
func (p *published) close() {
	for _, l := range p.tcp {
		l.listener.Close()
		l.plain.Close() // plain may be nil
	}
	for _, c := range p.udp {
		c.conn.Close()
	}
}

// forwardError returns an error that explains why a port cannot be bound. half means that the forward was for both
// loopback addresses, and that the port is free at the other one.
func forwardError(f *Forward, err error, half bool) error {
	e := &ForwardError{Forward: *f, Err: err}
	why := err.Error()
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		why = fmt.Sprintf("%s of this host is taken: stop the program that has it, or choose another port", f.Host)
		if half {
			e.Free = netip.AddrPortFrom(otherLoopback(f.Host.Addr()), f.Host.Port())
			why += fmt.Sprintf(", or %s, which is free", e.Free)
		}
	case errors.Is(err, syscall.EACCES):
		why = fmt.Sprintf("port %d of this host needs privilege: choose one from 1024 on", f.Host.Port())
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		why = fmt.Sprintf("%s is not an address of this host", f.Host.Addr())
	default:
		var op *net.OpError
		if errors.As(err, &op) {
			why = op.Err.Error()
		}
	}
	e.why = why
	return e
}

// otherLoopback returns 127.0.0.1 for ::1 and ::1 for 127.0.0.1.
func otherLoopback(a netip.Addr) netip.Addr {
	if a == hostLoopback6 {
		return hostLoopback
	}
	return hostLoopback6
}

// ForwardError is the error of New if a port cannot be forwarded.
type ForwardError struct {
	Forward Forward // the forward, with the host address that is not available
	// Free is set if the forward was for both 127.0.0.1 and ::1, and the port is in use at only one of them: it is the
	// other address, with the port. Otherwise it is zero.
	Free netip.AddrPort
	Err  error // the error of the host's kernel
	why  string
}

// Error implements error.
func (e *ForwardError) Error() string {
	return fmt.Sprintf("usernet: cannot forward %s: %s", e.Forward, e.why)
}

// Unwrap returns the host's error.
func (e *ForwardError) Unwrap() error { return e.Err }
