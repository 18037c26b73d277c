//go:build linux

// Package tap is a device on a Linux TAP or TUN interface. The kernel's network stack is the other
// end (Documentation/networking/tuntap.rst of the kernel).
//
// Frames carry the virtio-net header in both directions, so a frame of 64 kB with an unfinished
// checksum crosses in one system call. Each queue has a descriptor of its own (IFF_MULTI_QUEUE).
// The kernel delivers a flow to the queue that last sent a frame of that flow.
//
// Creating an interface requires CAP_NET_ADMIN. Opening one that an administrator has created for
// the user (ip tuntap add dev tap0 mode tap user NAME) requires no privilege. A process that may
// not open /dev/net/tun at all can inherit the descriptors from its parent: see FromFiles.
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
	// Name of the interface, at most 15 bytes. It may end in %d, which is replaced by the first
	// free number. Default "tap%d" or, for medium IP, "tun%d".
	Name   string
	Medium link.Medium // Ethernet: TAP; IP: TUN
	Queues int         // number of queues; default 1, at most 256; more than 1 requires an interface created with multi_queue
	// Persist keeps the interface after the device is closed.
	Persist bool
	// NoOffloads makes the kernel finish all checksums and segment all frames.
	NoOffloads bool
	// MAC is the address of this end. The default is derived from the address of the kernel's end,
	// which is the one that ip link shows.
	MAC wire.MAC
}

// Device is one end of a TAP or TUN interface; the kernel is the other end.
type Device struct {
	info   link.Info
	ends   []*queue
	queues []link.Queue // the elements of ends, as interfaces

	filters filters // programs by which the kernel drops frames: see thin.go
}

// Open opens the interface, and creates it if it does not exist. It does not configure the
// interface: a new one is down and has no address.
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

// OpenFiles opens the interface for another process. A child process that inherits the files
// creates the device from them and info by FromFiles. The caller owns the files.
func OpenFiles(c Config) (files []*os.File, info link.Info, err error) {
	fds, info, err := open(c)
	if err != nil { // the descriptors are closed, and their numbers may be in use again
		return nil, info, err
	}
	for _, n := range fds {
		files = append(files, os.NewFile(uintptr(n), info.Name))
	}
	return files, info, nil
}

// FromFiles returns a device over open descriptors, one per queue. Each must be set up with
// IFF_NO_PI and IFF_VNET_HDR and a header of link.VirtioHeaderLen bytes. info.Offloads must agree
// with the TUNSETOFFLOAD setting. FromFiles takes ownership of the files, also on error.
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

// Stats implements link.Device. Frames that the kernel dropped earlier are counted in the
// statistics of the interface.
func (d *Device) Stats() (s link.Stats) {
	for _, q := range d.ends {
		s.Add(q.counters.Stats())
	}
	return s
}

// Close implements link.Device. An interface that Open created is removed, unless Config.Persist is
// set.
func (d *Device) Close() error {
	first := d.end()
	for _, q := range d.ends {
		if err := q.close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
