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

// Program is an XDP program on an interface. It steers frames that match rules to sockets, and
// leaves all other traffic to the kernel. It is bound to a file descriptor of this process (a link
// of bpf(2)), so the kernel removes it when the process ends, however that happens.
type Program struct {
	sockets *ebpf.Map
	program *ebpf.Program
	link    link.Link
	native  bool
	name    string
}

// Mode selects where a program runs.
type Mode uint8

// Values of Mode.
const (
	BestMode Mode = iota // Native if the driver supports it, otherwise Generic
	Native               // the program runs in the driver, before the kernel creates a packet
	Generic              // the program runs in the kernel, after the driver
)

// ProgramConfig describes a program to attach.
type ProgramConfig struct {
	Interface string
	Match     []match.Rule // rules for the frames that the sockets get; none: every frame
	Mode      Mode
	// Size is the longest frame of the sockets in bytes. If a frame does not fit into one chunk,
	// the program declares that it supports frames in several pieces.
	Size int
}

// Attach attaches a program to an interface. Until Steer is called, it passes all frames to the
// kernel.
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

// load creates the map of sockets and loads the program.
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

// minQueues is the least number of queues that the map has room for: an interface may get more
// queues while the program is attached.
const minQueues = 64

// attach attaches the program to the interface with the given index. With BestMode it falls back to
// Generic, except for errors that Generic would return too.
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

// linkPatience is the longest time to wait for a driver that restarts its device to attach a
// program.
const linkPatience = 10 * time.Second

// awaitLink waits until the interface is running again.
func (p *Program) awaitLink() {
	for end := time.Now().Add(linkPatience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if i, err := net.InterfaceByName(p.name); err != nil || i.Flags&net.FlagRunning != 0 {
			return
		}
	}
}

// explain adds advice to an error of attaching.
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

// Steer makes the program send frames to socket s: those that match the rules and arrive
// at the queue of s.
func (p *Program) Steer(s *Socket) error {
	err := p.sockets.Put(uint32(s.queue), uint32(s.Rx.fd))
	if err != nil {
		return fmt.Errorf("%s, queue %d: %w", p.name, s.queue, err)
	}
	return nil
}

// Forget leaves the frames of a queue to the kernel again. Closing the queue's socket has the same
// effect.
func (p *Program) Forget(queue int) error {
	if err := p.sockets.Delete(uint32(queue)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("%s, queue %d: %w", p.name, queue, err)
	}
	return nil
}

// Native reports whether the program runs in the driver.
func (p *Program) Native() bool { return p.native }

// Close detaches the program from the interface. It may be called more than once.
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

// Offset of the queue index in struct xdp_md, and the verdict XDP_PASS, which leaves a frame to the
// kernel.
const (
	mdQueue = 16
	xdpPass = 2
)

// redirect returns the instructions that pass the frame to the socket in the map for its queue, or
// to the kernel if there is none.
func redirect(sockets int) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, sockets),
		asm.LoadMem(asm.R2, filter.Context, mdQueue, asm.Word),
		asm.Mov.Imm(asm.R3, xdpPass),
		asm.FnRedirectMap.Call(),
		asm.Return(),
	}
}
