//go:build linux

package afxdp

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"loam/link/filter"
	"loam/link/match"
)

// Program is an XDP program on an interface that steers frames which agree with
// rules to sockets, and leaves all other traffic to the kernel. It is tied to a
// descriptor of this process (a link of bpf(2)): when the process is gone, by
// whatever death, so is the program.
type Program struct {
	sockets *ebpf.Map
	program *ebpf.Program
	link    link.Link
	native  bool
	name    string
}

// Mode is where a program runs.
type Mode uint8

// Modes.
const (
	BestMode Mode = iota // in the driver where it has a hook, else in the kernel
	Native               // in the driver, before there is a packet of the kernel
	Generic              // in the kernel, behind the driver
)

// ProgramConfig describes a program.
type ProgramConfig struct {
	Interface string
	Match     []match.Rule // no rule: every frame
	Mode      Mode
	// Size is the longest frame of the sockets; above that of a page, the program
	// says that it takes frames in pieces.
	Size int
}

// Attach puts a program on an interface. Until it is told of sockets it passes all
// frames to the kernel.
func Attach(c ProgramConfig) (*Program, error) {
	i, err := net.InterfaceByName(c.Interface)
	if err != nil {
		return nil, fmt.Errorf("there is no interface %q: ip link lists those that there are", c.Interface)
	}
	p := &Program{name: c.Interface}
	if err := p.load(c); err != nil {
		p.Close()
		return nil, p.explain(err)
	}
	if err := p.attach(c.Mode, i.Index); err != nil {
		p.Close()
		return nil, p.explain(err)
	}
	if i.Flags&net.FlagRunning != 0 {
		p.awaitLink()
	}
	return p, nil
}

// load makes the map and the program.
func (p *Program) load(c ProgramConfig) (err error) {
	rx, _ := Queues(c.Interface)
	p.sockets, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: uint32(max(rx, minQueues))})
	if err != nil {
		return err
	}
	code, err := filter.Assemble(filter.XDP, c.Match, redirect(p.sockets.FD()))
	if err != nil {
		return err
	}
	spec := &ebpf.ProgramSpec{Name: "loam", Type: ebpf.XDP, Instructions: code, License: "BSD"}
	if layOut(c.Size, 1, 1).multi() {
		spec.Flags = unix.BPF_F_XDP_HAS_FRAGS
	}
	p.program, err = ebpf.NewProgram(spec)
	return err
}

// minQueues is how many queues a map has room for at least: an interface may be
// given more while the program is there.
const minQueues = 64

func (p *Program) attach(mode Mode, index int) (err error) {
	o := link.XDPOptions{Program: p.program, Interface: index, Flags: link.XDPDriverMode}
	p.native = mode != Generic
	if p.native {
		p.link, err = link.AttachXDP(o)
		if err == nil || mode == Native || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EPERM) {
			return err
		}
	}
	p.native, o.Flags = false, link.XDPGenericMode
	p.link, err = link.AttachXDP(o)
	return err
}

// linkPatience is how long a driver may take that restarts its device to take a
// program in.
const linkPatience = 10 * time.Second

// awaitLink waits until the interface runs again.
func (p *Program) awaitLink() {
	for end := time.Now().Add(linkPatience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if i, err := net.InterfaceByName(p.name); err != nil || i.Flags&net.FlagRunning != 0 {
			return
		}
	}
}

// explain says what to do about an error of attaching.
func (p *Program) explain(err error) error {
	say := func(why string) error { return fmt.Errorf("%s: %w: %s", p.name, err, why) }
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return say("XDP programs need CAP_BPF and CAP_NET_ADMIN: run as root")
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
		return say("there is an XDP program on it already: end what put it there, or ip link set " + p.name + " xdp off")
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ERANGE):
		return say("its driver takes no XDP program, or none at this MTU: lower the MTU, or take the generic mode")
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.EINVAL):
		return say("AF_XDP by a link of bpf takes Linux 5.9 or later")
	}
	return fmt.Errorf("%s: %w", p.name, err)
}

// Steer has frames that agree, and come to the queue of s, go to s.
func (p *Program) Steer(s *Socket) error {
	err := p.sockets.Put(uint32(s.queue), uint32(s.Rx.fd))
	if err != nil {
		return fmt.Errorf("%s, queue %d: %w", p.name, s.queue, err)
	}
	return nil
}

// Forget leaves frames of that queue to the kernel again. Closing a socket does it
// too.
func (p *Program) Forget(queue int) error {
	if err := p.sockets.Delete(uint32(queue)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("%s, queue %d: %w", p.name, queue, err)
	}
	return nil
}

// Native reports whether the program runs in the driver.
func (p *Program) Native() bool { return p.native }

// Close takes the program off the interface. It may be called again.
func (p *Program) Close() error {
	var all []error
	if p.link != nil {
		all = append(all, p.link.Close())
	}
	if p.program != nil {
		all = append(all, p.program.Close())
	}
	if p.sockets != nil {
		all = append(all, p.sockets.Close())
	}
	p.link, p.program, p.sockets = nil, nil, nil
	return errors.Join(all...)
}

// Offset of the queue in struct xdp_md, and the verdict that leaves a frame to the
// kernel.
const (
	mdQueue = 16
	xdpPass = 2
)

// redirect passes the frame to the socket that the map holds for its queue; if
// there is none, to the kernel.
func redirect(sockets int) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, sockets),
		asm.LoadMem(asm.R2, filter.Context, mdQueue, asm.Word),
		asm.Mov.Imm(asm.R3, xdpPass),
		asm.FnRedirectMap.Call(),
		asm.Return(),
	}
}
