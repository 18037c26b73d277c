//go:build linux

// Package afpacket is a device on any Ethernet interface of Linux, through packet
// sockets (packet(7)): what the interface receives is copied to the device, and
// what the device sends leaves by the interface. The kernel goes on using the
// interface too, and so does everybody else; it takes CAP_NET_RAW.
//
// There are two kinds of queue. The plain one (plain.go) moves a batch by one
// sendmmsg or recvmmsg, and has the kernel copy each frame. The ring (queue.go)
// shares memory with the kernel: TxRing, of PACKET_TX_RING in version 2, and
// RxRing, of PACKET_RX_RING in version 3, which others use by themselves too.
//
// Both carry the virtio-net header, so that frames of 64 kB with unfinished
// checksums cross as one. A device of several queues joins their sockets in a
// fanout group: the kernel spreads flows over them.
//
// The kernel takes VLAN tags out of the frames before it copies them here, and
// the device puts them back.
package afpacket

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"loam/link"
)

// Config describes an interface to open.
type Config struct {
	Interface string
	Queues    int // default 1
	// Ring shares memory with the kernel instead of copying by system calls.
	Ring bool
	// NoOffloads has the kernel finish all checksums and cut up all frames, in both
	// directions as far as it does: what the kernel of this machine, or of a
	// container at the other end of a veth, left undone stays so.
	NoOffloads bool
	// Bypass goes round the queueing discipline of the interface: no queue, and no
	// software that cuts up what the interface cannot (PACKET_QDISC_BYPASS).
	Bypass bool
	// Promiscuous takes frames to any address, for as long as the device is open.
	Promiscuous bool
}

// Device is the interface. It has the interface's own address, unless the stack
// on it is given another and the interface is promiscuous.
type Device struct {
	info   link.Info
	ends   []end
	queues []link.Queue // the same as ends
}

// end is one queue of either kind.
type end interface {
	link.Queue
	stats() link.Stats
	close() error
}

// Open opens the interface, which exists and is up.
func Open(c Config) (*Device, error) {
	info, index, err := describe(c.Interface)
	if err != nil {
		return nil, err
	}
	if !c.NoOffloads {
		info.Offloads = link.OffloadChecksum | link.OffloadTSO4 | link.OffloadTSO6
		if hasUSO() {
			info.Offloads |= link.OffloadUSO
		}
	}
	d := &Device{info: info}
	var group fanout
	for range max(c.Queues, 1) {
		q, err := d.open(c, index, &group)
		if err != nil {
			d.Close()
			return nil, explain(c.Interface, err)
		}
		d.ends = append(d.ends, q)
		d.queues = append(d.queues, q)
	}
	return d, nil
}

// open opens one queue.
func (d *Device) open(c Config, index int, group *fanout) (end, error) {
	if c.Ring {
		return openRings(c, &d.info, index, group)
	}
	return openPlain(c, &d.info, index, group)
}

// describe finds the interface.
func describe(name string) (info link.Info, index int, err error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return info, 0, fmt.Errorf("there is no interface %q: ip link lists those that there are", name)
	}
	if len(i.HardwareAddr) != len(info.MAC) && i.Flags&net.FlagLoopback == 0 {
		return info, 0, fmt.Errorf("%s is not an Ethernet interface", name)
	}
	info = link.Info{Name: name, Medium: link.Ethernet, MTU: i.MTU}
	copy(info.MAC[:], i.HardwareAddr)
	return info, i.Index, nil
}

// explain says what to do about an error of opening.
func explain(name string, err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%s: %w: packet sockets need CAP_NET_RAW: run as root", name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Info implements link.Device.
func (d *Device) Info() link.Info { return d.info }

// Queues implements link.Device.
func (d *Device) Queues() []link.Queue { return d.queues }

// Stats implements link.Device.
func (d *Device) Stats() (s link.Stats) {
	for _, q := range d.ends {
		s.Add(q.stats())
	}
	return s
}

// Close implements link.Device.
func (d *Device) Close() error {
	var first error
	for _, q := range d.ends {
		if err := q.close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
