//go:build linux

package method

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"

	"loam/link/afxdp"
	"loam/link/match"
	"loam/wire"
)

// A queue of an interface has one AF_XDP socket, and an interface one XDP program.
// Senders and receivers are opened one by one, by callers who do not know of each
// other; so what they share is kept here, from the first to the last of them. A
// sender takes the sending half of the socket of its queue, a receiver the other.

// xdpKey names a queue: of an interface, in a network namespace.
type xdpKey struct {
	namespace uint64 // inode
	index     int    // of the interface in it
	queue     int
}

// xdpPort is the socket of a queue.
type xdpPort struct {
	key      xdpKey
	name     string
	socket   *afxdp.Socket
	longest  int  // frame that the interface takes
	sends    bool // somebody has the sending half
	receives bool // somebody has the receiving half
	program  *xdpProgram
}

// xdpProgram is the program of an interface.
type xdpProgram struct {
	*afxdp.Program
	key   xdpKey // with queue 0
	rules []match.Rule
	users int // receivers
}

var xdp = struct {
	sync.Mutex // guards all that is below, and the fields of the values but for their sockets
	ports      map[xdpKey]*xdpPort
	programs   map[xdpKey]*xdpProgram
}{ports: map[xdpKey]*xdpPort{}, programs: map[xdpKey]*xdpProgram{}}

// xdpRxFrames is how many frames may wait for a receiver: a prober lets out no
// more probes than that before it has looked (gen/probe).
const xdpRxFrames = 8192

// takePort returns the port for c with the half that is asked for taken.
func takePort(c Config, send bool) (*xdpPort, error) {
	i, err := net.InterfaceByName(c.Interface)
	if err != nil {
		return nil, fmt.Errorf("there is no interface %q: ip link lists those that there are", c.Interface)
	}
	namespace, err := networkNamespace()
	if err != nil {
		return nil, err
	}
	key := xdpKey{namespace, i.Index, c.Queue}
	xdp.Lock()
	defer xdp.Unlock()
	p := xdp.ports[key]
	if p == nil {
		p = &xdpPort{key: key, name: c.Interface, longest: i.MTU + wire.EthernetLen + 2*wire.VLANTagLen}
		if p.socket, err = afxdp.OpenSocket(p.config(c)); err != nil {
			return nil, err
		}
		xdp.ports[key] = p
	}
	taken, half := &p.receives, "receiver"
	if send {
		taken, half = &p.sends, "sender"
	}
	if *taken {
		return nil, fmt.Errorf("%s, queue %d: has a %s already: take another queue", c.Interface, c.Queue, half)
	}
	*taken = true
	return p, nil
}

func (p *xdpPort) config(c Config) afxdp.SocketConfig {
	return afxdp.SocketConfig{
		Interface: c.Interface, Queue: c.Queue, Copying: afxdp.Copying(c.Copying),
		TxFrames: max(xdpTxFrames, 2*c.Batch), RxFrames: xdpRxFrames, Size: max(c.Size, p.longest),
	}
}

// networkNamespace tells the namespace of the calling thread from others.
func networkNamespace() (uint64, error) {
	info, err := os.Stat("/proc/thread-self/ns/net")
	if err != nil {
		return 0, err
	}
	return info.Sys().(*syscall.Stat_t).Ino, nil
}

// leave gives a half back, and closes the socket when nobody has the other.
func (p *xdpPort) leave(half *bool) error {
	xdp.Lock()
	defer xdp.Unlock()
	*half = false
	if p.sends || p.receives {
		return nil
	}
	delete(xdp.ports, p.key)
	return p.socket.Close()
}

// steer has frames that agree with the rules come to the port.
func (p *xdpPort) steer(rules []match.Rule) error {
	xdp.Lock()
	defer xdp.Unlock()
	key := p.key
	key.queue = 0
	program := xdp.programs[key]
	if program == nil {
		attached, err := afxdp.Attach(afxdp.ProgramConfig{Interface: p.name, Match: rules, Size: p.longest})
		if err != nil {
			return err
		}
		program = &xdpProgram{Program: attached, key: key, rules: slices.Clone(rules)}
		xdp.programs[key] = program
	}
	if !slices.Equal(program.rules, rules) {
		return fmt.Errorf("%s has one XDP program: its receivers have to ask for the same frames", p.name)
	}
	program.users++
	p.program = program
	return program.Steer(p.socket)
}

// unsteer leaves the frames to the kernel again. The last receiver takes the
// program off.
func (p *xdpPort) unsteer() error {
	xdp.Lock()
	defer xdp.Unlock()
	program := p.program
	if program == nil {
		return nil
	}
	p.program = nil
	err := program.Forget(p.key.queue)
	if program.users--; program.users > 0 {
		return err
	}
	delete(xdp.programs, program.key)
	return errors.Join(err, program.Close())
}
