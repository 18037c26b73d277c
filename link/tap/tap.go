//go:build linux

// Package tap is a device on a Linux TAP or TUN interface: the kernel's network
// stack is at the other end (Documentation/networking/tuntap.rst of the kernel).
//
// Frames carry the virtio-net header both ways, so a frame of 64 kB with an
// unfinished checksum crosses in one system call. Each queue is a descriptor of
// its own (IFF_MULTI_QUEUE); the kernel keeps a flow in the queue that last sent
// for it.
//
// Creating an interface takes CAP_NET_ADMIN; opening one that an administrator
// has made for the user (ip tuntap add dev tap0 mode tap user NAME) takes
// nothing. A process that may not open /dev/net/tun at all is given the
// descriptors by its parent: see FromFiles.
package tap

import (
	"fmt"
	"os"

	"loam/link"
	"loam/link/fd"
	"loam/wire"
)

// Config describes an interface to open or create.
type Config struct {
	// Name of the interface, at most 15 bytes. It may end in %d, for the first
	// number that is free. Default "tap%d" or, for medium IP, "tun%d".
	Name   string
	Medium link.Medium // Ethernet: TAP, IP: TUN
	Queues int         // default 1; more need an interface that was created for it
	// Persist leaves the interface behind when the device is closed.
	Persist bool
	// NoOffloads has the kernel finish all checksums and cut up all frames.
	NoOffloads bool
	// MAC is the address of this end; by default one that is made from the
	// kernel's. (The address that ip link shows is that of the kernel's end.)
	MAC wire.MAC
}

// Device is an interface whose other end is the kernel.
type Device struct {
	info   link.Info
	ends   []*queue
	queues []link.Queue // the same as ends
}

// Open opens the interface, and creates it if it does not exist. The interface
// is left as it is: down, if it is new, and without an address.
func Open(c Config) (*Device, error) {
	fds, info, err := open(c)
	if err != nil {
		return nil, err
	}
	d := &Device{info: info}
	for i, n := range fds {
		if err := d.add(fd.New(n, info.Name)); err != nil {
			closeAll(fds[i+1:])
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

// OpenFiles is Open for another process: a child that inherits the files makes
// the device of them, and of info, with FromFiles.
func OpenFiles(c Config) (files []*os.File, info link.Info, err error) {
	fds, info, err := open(c)
	if err != nil { // they are closed, and their numbers somebody else's
		return nil, info, err
	}
	for _, n := range fds {
		files = append(files, os.NewFile(uintptr(n), info.Name))
	}
	return files, info, nil
}

// FromFiles makes a device of descriptors that are open already, one a queue:
// they are set up with IFF_NO_PI and IFF_VNET_HDR, with a header of
// link.VirtioHeaderLen bytes, and info says what the other end was told by
// TUNSETOFFLOAD. The files are closed; the device has copies.
func FromFiles(files []*os.File, info link.Info) (*Device, error) {
	d := &Device{info: info}
	if len(files) == 0 {
		return nil, fmt.Errorf("tap: %s: no descriptor was passed", info.Name)
	}
	for i, f := range files {
		if err := d.add(fd.Dup(f)); err != nil {
			for _, f := range files[i+1:] {
				f.Close()
			}
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

func (d *Device) add(f *fd.File, err error) error {
	if err != nil {
		return err
	}
	q := newQueue(f, &d.info)
	d.ends = append(d.ends, q)
	d.queues = append(d.queues, q)
	return nil
}

// Info implements link.Device.
func (d *Device) Info() link.Info { return d.info }

// Queues implements link.Device.
func (d *Device) Queues() []link.Queue { return d.queues }

// Stats implements link.Device. What the kernel dropped before it came here is
// in the statistics of the interface.
func (d *Device) Stats() (s link.Stats) {
	for _, q := range d.ends {
		s.Add(q.counters.Stats())
	}
	return s
}

// Close implements link.Device. The interface goes away with it unless it was
// opened with Persist or existed before.
func (d *Device) Close() error {
	var first error
	for _, q := range d.ends {
		if err := q.close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
