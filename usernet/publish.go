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
		f := &list[i]
		chosen := f.Host.Port() != 0
		err := p.bind(f)
		if err == nil && f.loopback {
			err = p.bindLoopback6(*f, chosen)
		}
		if err != nil {
			p.close()
			return nil, forwardError(f, err)
		}
	}
	return p, nil
}

func (p *published) bind(f *Forward) error {
	if f.Proto == "tcp" {
		return p.bindTCP(f)
	}
	return p.bindUDP(f)
}

// bindLoopback6 listens at ::1 too, where the host has that; a port that nobody has chosen
// may be taken there.
func (p *published) bindLoopback6(f Forward, chosen bool) error {
	f.Host = netip.AddrPortFrom(hostLoopback6, f.Host.Port())
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

// forwardError says what to do about a port that could not be had.
func forwardError(f *Forward, err error) error {
	why := err.Error()
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		why = fmt.Sprintf("port %d of this host is taken: stop the program that has it, or choose another port", f.Host.Port())
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
	return &ForwardError{Forward: *f, why: why, Err: err}
}

// ForwardError is the error of New for a port forward that cannot be.
type ForwardError struct {
	Forward Forward
	Err     error // the host's
	why     string
}

// Error implements error.
func (e *ForwardError) Error() string {
	return fmt.Sprintf("usernet: cannot forward %s: %s", e.Forward, e.why)
}

// Unwrap returns the host's error.
func (e *ForwardError) Unwrap() error { return e.Err }
