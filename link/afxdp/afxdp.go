//go:build linux

// Package afxdp is a device on any interface of Linux through AF_XDP sockets: a
// program in the driver steers frames, before the kernel makes packets of them,
// into memory that is shared with us, and what we write there leaves without
// passing through the kernel's stack. Read Documentation/networking/af_xdp.rst of
// the kernel before the code; then socket.go and memory.go, tx.go and rx.go, and
// program.go. What is shared with the kernel is in ring_unsafe.go.
//
// Three layers, each of use by itself:
//
//	Program  steers frames that agree with match rules; all others stay the kernel's
//	Socket   one queue: a half to send, a half to receive, batches without calls
//	Device   link.Device of them, for the stack
//
// Where the driver can, the device reads and writes the memory itself (zero copy);
// else the kernel copies, which works on every interface.
//
// A frame carries no metadata here: what the sender on this machine, or in a
// container at the other end of a veth pair, leaves to hardware (checksums,
// segmentation) arrives unfinished. Switch that off at the sender: ethtool -K IF tx
// off. Segmentation towards a veth is switched off by the kernel itself.
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
	// Queue is the first queue, and Queues how many there are from it on. Default: all
	// that the interface receives with. Frames that come to others stay the kernel's.
	Queue, Queues int
	Match         []match.Rule // what the device takes away from the kernel; no rule: every frame
	Copying       Copying
	Mode          Mode
	BusyPoll      time.Duration // see SocketConfig
	Frames        int           // that may wait to be read, of each queue; default 4096
	// Promiscuous takes frames to any address, for as long as the device is open.
	Promiscuous bool
}

// Device is the interface. It has the interface's own address, unless the stack
// on it is given another and the interface is promiscuous.
type Device struct {
	info     link.Info
	program  *Program
	sockets  []*Socket
	ends     []*queue
	queues   []link.Queue  // the same as ends
	closing  chan struct{} // one place: who puts something in closes
	closed   chan struct{} // closed when that is done
	listener int           // packet socket that holds promiscuous mode, or -1
}

// Open opens the interface, which exists and is up.
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

// Promiscuous has the interface take frames to any address until the descriptor is
// closed, or the process ends: the kernel counts who wants it.
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

// ZeroCopy reports whether the device reads and writes the memory itself.
func (d *Device) ZeroCopy() bool { return d.sockets[0].ZeroCopy() }

// Native reports whether the program runs in the driver.
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
		keep(d.program.Close()) // first: the kernel has its traffic back at once
	}
	for _, q := range d.ends {
		keep(q.Close(func() {})) // the sockets are closed together
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
