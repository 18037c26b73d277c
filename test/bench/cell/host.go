package cell

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"loam/test/bench/guest"
	"loam/test/bench/subject"
	"loam/unikernel"
	"loam/usernet"
)

// host is the main function of the process "host", which runs a program of package guest as a process of Loam or of
// Linux. It answers its parent only if the program ends, which is an error.
func host(spec Spec) (answer, error) {
	<-allowed
	runtime.LockOSThread() // the program is killed when the thread that started it ends
	if spec.Subject == subject.Loam || spec.Subject == subject.LoamRelay {
		network := hostNetwork(spec.Place)
		network.Relay = spec.Subject == subject.LoamRelay
		status, err := unikernel.RunProgram(spec.Files.OnLoam, unikernel.Options{Network: network})
		return answer{}, errors.Join(err, fmt.Errorf("the program ended with status %d", status))
	}
	if err := loopbackUp(); err != nil {
		return answer{}, err
	}
	cmd := exec.Command(spec.Files.Plain)
	if spec.Subject == subject.LinuxProxy {
		behind := netip.AddrPortFrom(loopback, guest.Port+1)
		cmd.Args = append(cmd.Args, "-addr", behind.String())
		if err := proxy(netip.AddrPortFrom(loopback, guest.Port), behind); err != nil {
			return answer{}, err
		}
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return answer{}, errors.Join(cmd.Run(), errors.New("the program ended"))
}

var loopback = netip.MustParseAddr("127.0.0.1")

// proxy accepts connections at one address (from) and forwards them to another (to),
// until this process ends.
func proxy(from, to netip.AddrPort) error {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(from))
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			go relay(c, to)
		}
	}()
	return nil
}

// relay forwards between c and a new connection, and returns when both have ended.
func relay(c *net.TCPConn, to netip.AddrPort) {
	defer c.Close()
	d, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(to))
	if err != nil {
		return
	}
	defer d.Close()
	go func() {
		io.Copy(d, c)
		d.CloseWrite()
	}()
	io.Copy(c, d)
	c.CloseWrite()
}

// hostNetwork returns the network that the flags of "loam run" would select.
func hostNetwork(place Place) unikernel.Network {
	if place == Wire {
		return unikernel.Network{Kind: unikernel.TapNetwork, Tap: linkName, Address: subject.Second, Gateway: subject.First.Addr()}
	}
	return unikernel.Network{Kind: unikernel.UserNetwork, Forwards: []usernet.Forward{{
		Proto: "tcp", Host: netip.AddrPortFrom(loopback, guest.Port),
	}}}
}
