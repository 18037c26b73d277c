package usernet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// Port forwards: sockets of the host on which the gateway listens for the guest.
// They are all bound before anything else happens, so that a port that is taken
// is one clear error and nothing is left behind.

// published is the host's side of the forwards.
type published struct {
	tcp []publishedTCP
	udp []publishedUDP
}

// bindForwards listens on all ports of the forwards, and puts the ports that
// the host chose into list.
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

// bindForward listens on the port of one forward, at both addresses if none was given.
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
		return forwardError(&six, err, true) // it is ours now
	}
	return nil
}

// canBind reports whether a forward could be at another address of the host.
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

// bindLoopback6 listens at ::1, which f is of, where the host has that; a port that nobody has
// chosen may be taken there.
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

func (p *published) bindTCP(f *Forward) error {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(f.Host))
	if err != nil {
		return err
	}
	f.Host = withPort(f.Host, l.Addr().(*net.TCPAddr).Port)
	p.tcp = append(p.tcp, publishedTCP{listener: l, guest: f.Guest})
	return nil
}

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

// close stops listening.
func (p *published) close() {
	for _, l := range p.tcp {
		l.listener.Close()
		l.plain.Close() // also of none
	}
	for _, c := range p.udp {
		c.conn.Close()
	}
}

// forwardError says what to do about a port that could not be had. half: it was one of the two
// loopback addresses, and the other one can be had.
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

// otherLoopback is 127.0.0.1 for ::1 and ::1 for 127.0.0.1.
func otherLoopback(a netip.Addr) netip.Addr {
	if a == hostLoopback6 {
		return hostLoopback
	}
	return hostLoopback6
}

// ForwardError is the error of New for a port forward that cannot be.
type ForwardError struct {
	Forward Forward // with the address that could not be had
	// Free is the other of the addresses 127.0.0.1 and ::1, if the forward was for both, one is
	// taken and this one is not.
	Free netip.AddrPort
	Err  error // the host's
	why  string
}

// Error implements error.
func (e *ForwardError) Error() string {
	return fmt.Sprintf("usernet: cannot forward %s: %s", e.Forward, e.why)
}

// Unwrap returns the host's error.
func (e *ForwardError) Unwrap() error { return e.Err }
