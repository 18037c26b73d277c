//go:build linux

// Package afxdp is a device on any interface of Linux, using AF_XDP sockets. A program in the
// driver steers received frames into memory shared with the process, before the kernel creates
// packets from them. Frames that the process writes to that memory are sent without passing through
// the kernel's network stack.
//
// Before the code, read Documentation/networking/af_xdp.rst of the kernel. Then read socket.go and
// memory.go, tx.go and rx.go, and program.go. The data structures shared with the kernel are in
// ring_unsafe.go.
//
// There are three layers, each usable on its own:
//
//	Program  steers frames that match rules; all others go to the kernel
//	Socket   one queue: a sending half and a receiving half, with batches
//	Device   a link.Device of sockets, for a stack
//
// If the driver supports it, the network card accesses the memory directly (zero copy). Otherwise
// the kernel copies frames, which works on every interface.
//
// Frames carry no metadata here. Work that a sender on this machine, or in a container at the other
// end of a veth pair, leaves to hardware (checksums, segmentation) is not done. Turn offloads off
// at the sender: ethtool -K IF tx off. The kernel itself turns segmentation towards a veth off.
package afxdp

import (
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"loam/link"
	"loam/link/match"
)

// Config describes an interface to open.
type Config struct {
	Interface string
	// Queue is the first queue, and Queues is the number of queues. The default is all receive
	// queues from Queue on. Frames of other queues go to the kernel.
	Queue, Queues int
	Match         []match.Rule // frames that go to the device instead of the kernel; no rules: every frame
	Copying       Copying
	Mode          Mode
	BusyPoll      time.Duration // how long a system call polls the device: see SocketConfig
	Frames        int           // frames per queue that may wait to be read; default 4096
	// Promiscuous receives frames for any address while the device is open.
	Promiscuous bool
}

// Device is a device on a Linux interface. It has the address of the interface. With another
// address on the stack, the interface must be promiscuous.
type Device struct {
	info     link.Info
	program  *Program
	sockets  []*Socket
	ends     []*queue
	queues   []link.Queue  // the elements of ends, as interfaces
	closing  chan struct{} // buffer of one: the first Close sends to it and does the work; later calls wait for closed
	closed   chan struct{} // closed when the first Close is done
	listener int           // packet socket that holds promiscuous mode, or -1
}

// Open opens the interface, which must exist. To carry traffic it must be up.
func Open(c Config) (*Device, error) {
	i, err := net.InterfaceByName(c.Interface)
	if err != nil {
		return nil, fmt.Errorf("there is no interface %q: ip link lists those that there are", c.Interface)
	}
	info := link.Info{Name: c.Interface, Medium: link.Ethernet, MTU: i.MTU}
	if len(i.HardwareAddr) != len(info.MAC) && i.Flags&net.FlagLoopback == 0 {
		return nil, fmt.Errorf("%s is not an Ethernet interface", c.Interface)
	}
	copy(info.MAC[:], i.HardwareAddr)
	if c.Queues == 0 {
		rx, _ := Queues(c.Interface)
		c.Queues = max(1, rx-c.Queue)
	}
	d := &Device{info: info, listener: -1, closing: make(chan struct{}, 1), closed: make(chan struct{})}
	if err := d.open(c, i.Index); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// open attaches the program, opens the sockets, and steers frames to them last. On error, the caller
// calls Close.
func (d *Device) open(c Config, index int) (err error) {
	size := d.info.MaxLen() + tags
	d.program, err = Attach(ProgramConfig{Interface: c.Interface, Match: c.Match, Mode: c.Mode, Size: size})
	if err != nil {
		return err
	}
	d.sockets, err = openSockets(SocketConfig{
		Interface: c.Interface, Queue: c.Queue, Copying: c.Copying, RxFrames: c.Frames, Size: size, BusyPoll: c.BusyPoll,
	}, c.Queues)
	if err != nil {
		return err
	}
	for _, s := range d.sockets {
		q, err := newQueue(&d.info, s)
		if err != nil {
			return err
		}
		d.ends, d.queues = append(d.ends, q), append(d.queues, q)
	}
	if c.Promiscuous {
		if d.listener, err = Promiscuous(index); err != nil {
			return err
		}
	}
	for _, s := range d.sockets {
		if err := d.program.Steer(s); err != nil {
			return err
		}
	}
	return nil
}

// Promiscuous makes the interface receive frames for any address until the returned descriptor is
// closed or the process ends. The kernel counts such requests. index is the interface index.
func Promiscuous(index int) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	m := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("promiscuous mode", err)
	}
	return fd, nil
}

// Info implements link.Device.
func (d *Device) Info() link.Info { return d.info }

// Queues implements link.Device.
func (d *Device) Queues() []link.Queue { return d.queues }

// ZeroCopy reports whether the network card accesses the memory directly.
func (d *Device) ZeroCopy() bool { return d.sockets[0].ZeroCopy() }

// Native reports whether the XDP program runs in the driver.
func (d *Device) Native() bool { return d.program.Native() }

// Stats implements link.Device.
func (d *Device) Stats() (s link.Stats) {
	for _, q := range d.ends {
		s.Add(q.stats())
	}
	return s
}

// Close implements link.Device.
func (d *Device) Close() error {
	select {
	case d.closing <- struct{}{}:
	default:
		<-d.closed
		return nil
	}
	defer close(d.closed)
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	if d.program != nil {
		keep(d.program.Close()) // closed first, so that the kernel receives its traffic again at once
	}
	for _, q := range d.ends {
		keep(q.Close(func() {})) // the sockets are closed below, after all queues have stopped using them
	}
	closeSockets(d.sockets)
	if len(d.sockets) > 0 {
		d.sockets[0].memory.close()
	}
	if d.listener >= 0 {
		keep(unix.Close(d.listener))
	}
	return first
}
