//go:build linux

// Package afpacket is a device on any Ethernet interface of Linux, using packet sockets
// (packet(7)). Frames that the interface receives are copied to the device, and frames that the
// device sends leave by the interface. The kernel and all other programs continue to use the
// interface. Opening a device requires CAP_NET_RAW.
//
// There are two kinds of queue. The plain queue (plain.go) transfers a batch with one sendmmsg or
// recvmmsg, and the kernel copies each frame. The ring queue (rings.go) shares memory with the
// kernel. It consists of a TxRing (PACKET_TX_RING, version 2) and an RxRing (PACKET_RX_RING,
// version 3), which other packages also use on their own.
//
// Both kinds carry the virtio-net header, so frames of 64 kB with unfinished checksums cross as one
// frame. A device with several queues joins their sockets to a fanout group: the kernel distributes
// flows over them.
//
// The kernel removes VLAN tags from received frames before it delivers them, and the device
// restores the tags.
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
	Queues    int // number of queues; 0: 1
	// Ring selects memory shared with the kernel instead of copying by system calls.
	Ring bool
	// NoOffloads makes the kernel finish all checksums and segment all frames, as far as it can.
	// Received frames may still have unfinished checksums if this machine sent them, or a container
	// at the other end of a veth.
	NoOffloads bool
	// Bypass skips the queueing discipline of the interface (PACKET_QDISC_BYPASS). There is then no
	// queue, and no software segmentation of frames that the interface cannot segment.
	Bypass bool
	// Promiscuous receives frames for any address while the device is open.
	Promiscuous bool
}

// Device is a device on a Linux interface. It has the address of the interface. With another
// address on the stack, the interface must be promiscuous.
type Device struct {
	info   link.Info
	ends   []end
	queues []link.Queue // the elements of ends, as interfaces
}

// end is one queue of either kind.
type end interface {
	link.Queue
	stats() link.Stats
	close() error
}

// Open opens the interface, which must exist. To carry traffic it must be up.
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

// describe returns the description and the index of an interface.
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

// explain adds advice to an error of opening an interface.
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
