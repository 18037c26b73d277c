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

// Each interface queue has one AF_XDP socket, and each interface one XDP program. Senders and receivers, which are
// opened independently, share them. So this file keeps these objects from their first user to their last. A sender owns
// the sending half of its queue's socket, and a receiver the receiving half.

// xdpKey identifies an interface queue in a network namespace.
type xdpKey struct {
	namespace uint64 // inode number of the namespace's file in /proc
	index     int    // interface index in the namespace
	queue     int
}

// xdpPort is the AF_XDP socket of an interface queue.
type xdpPort struct {
	key      xdpKey
	name     string
	socket   *afxdp.Socket
	longest  int  // length of the longest frame that the interface accepts
	sends    bool // a sender uses the sending half
	receives bool // a receiver uses the receiving half
	program  *xdpProgram
}

// xdpProgram is the XDP program of an interface.
type xdpProgram struct {
	*afxdp.Program
	key   xdpKey // the key with the index of the interface and queue 0
	rules []match.Rule
	users int // number of receivers
}

var xdp = struct {
	sync.Mutex // guards the fields below and the fields of their values, except the sockets
	ports      map[xdpKey]*xdpPort
	programs   map[xdpKey]*xdpProgram
}{ports: map[xdpKey]*xdpPort{}, programs: map[xdpKey]*xdpProgram{}}

// xdpRxFrames is the number of frames that can wait for a receiver. A probe run sends at most this number of probes
// before it polls the receiver (gen/probe).
const xdpRxFrames = 8192

// takePort returns the port for c, and marks its sending or receiving half as used. It returns an error if that half is
// in use already.
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
		return nil, fmt.Errorf("%s, queue %d: has a %s already, and an XDP socket has one: end that, or use the method ring", c.Interface, c.Queue, half)
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

// networkNamespace identifies the network namespace of the calling thread.
func networkNamespace() (uint64, error) {
	info, err := os.Stat("/proc/thread-self/ns/net")
	if err != nil {
		return 0, err
	}
	return info.Sys().(*syscall.Stat_t).Ino, nil
}

// leave marks a half of the port as unused. If the other half is unused too, it closes the socket.
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

// steer makes the XDP program redirect frames that match the rules to the port. All receivers of an interface must use
// the same rules.
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

// unsteer makes the XDP program leave the frames of the port to the kernel. The last receiver removes the program from
// the interface.
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
