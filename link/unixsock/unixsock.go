//go:build linux

// Package unixsock is a device that carries frames over a Unix socket: to QEMU,
// or between two Loam processes.
//
// The framings are those of QEMU's -netdev stream (each frame behind its length,
// four bytes, big-endian) and -netdev dgram (each frame a datagram). Between two
// Loam processes Config.Header puts a virtio-net header in front of each frame,
// behind the length, so that offloads cross too; both ends have to agree on it,
// since nothing in the stream tells.
//
// Stream is the faster of the two, and what two Loam processes should use: the
// kernel takes 64 frames in one call and hands out as many as there are, while
// it keeps no more than net.unix.max_dgram_qlen datagrams (10 by default) for a
// receiver. See the benchmark.
package unixsock

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"loam/link"
	"loam/link/fd"
	"loam/wire"
)

// Framing says how frames are told apart.
type Framing uint8

// Framings.
const (
	Stream   Framing = iota // SOCK_STREAM, a length in front of each frame
	Datagram                // SOCK_DGRAM or SOCK_SEQPACKET, a frame each
)

// Config describes both ends alike, but for the address.
type Config struct {
	Name    string // default "unix"
	Framing Framing
	Medium  link.Medium
	MTU     int      // default 1500
	MAC     wire.MAC // of this end
	// Header has a virtio-net header precede each frame; the device then has all
	// offloads. QEMU has none.
	Header bool
}

// AllOffloads is what a device with a Header has.
const AllOffloads = link.OffloadChecksum | link.OffloadTSO4 | link.OffloadTSO6 | link.OffloadUSO

// sendBuffer is what a socket is asked to hold, in bytes. The default of Linux is
// three frames of 64 kB; with more, sender and receiver meet less often (13
// against 10 µs for such a frame).
const sendBuffer = 1 << 20

func (c *Config) info() link.Info {
	info := link.Info{Name: c.Name, Medium: c.Medium, MAC: c.MAC, MTU: c.MTU}
	if info.Name == "" {
		info.Name = "unix"
	}
	if info.MTU <= 0 {
		info.MTU = 1500
	}
	info.MTU = min(info.MTU, 65535)
	if c.Header {
		info.Offloads = AllOffloads
	}
	return info
}

// headerLen is the length of the header in front of each frame.
func (c *Config) headerLen() int {
	if c.Header {
		return link.VirtioHeaderLen
	}
	return 0
}

// end is what both framings are to the device.
type end interface {
	link.Queue
	stats() link.Stats
	close() error
}

// Device is one end of a socket, or of several, each a queue.
type Device struct {
	info   link.Info
	ends   []end
	queues []link.Queue // the same as ends
	path   string       // of a socket that Close removes, or empty
}

// FromFiles makes a device of connected sockets, one a queue: descriptors that a
// parent process passed, or one end of each of several socket pairs. The files
// are closed; the device has copies.
func FromFiles(c Config, files ...*os.File) (*Device, error) {
	d := &Device{info: c.info()}
	if len(files) == 0 {
		return nil, fmt.Errorf("unixsock: %s: no descriptor was passed", d.info.Name)
	}
	for i, f := range files {
		file, err := fd.Dup(f)
		if err != nil {
			for _, f := range files[i+1:] {
				f.Close()
			}
			d.Close()
			return nil, fmt.Errorf("%s: %w", d.info.Name, err)
		}
		d.add(&c, file, "")
	}
	return d, nil
}

// add adds a queue. peer is the path that a datagram socket has still to connect
// to, or empty.
func (d *Device) add(c *Config, f *fd.File, peer string) {
	var e end
	f.Do(func(fd uintptr) { // the system may grant less
		syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, sendBuffer)
	})
	if c.Framing == Datagram {
		e = newDatagram(f, &d.info, c.headerLen(), peer)
	} else {
		e = newStream(f, &d.info, c.headerLen())
	}
	d.ends = append(d.ends, e)
	d.queues = append(d.queues, e)
}

// Info implements link.Device.
func (d *Device) Info() link.Info { return d.info }

// Queues implements link.Device.
func (d *Device) Queues() []link.Queue { return d.queues }

// Stats implements link.Device.
func (d *Device) Stats() (s link.Stats) {
	for _, e := range d.ends {
		s.Add(e.stats())
	}
	return s
}

// Close implements link.Device. What the sockets have taken still arrives.
func (d *Device) Close() error {
	var first error
	for _, e := range d.ends {
		if err := e.close(); err != nil && first == nil {
			first = err
		}
	}
	if d.path != "" {
		if err := os.Remove(d.path); err != nil && !errors.Is(err, os.ErrNotExist) && first == nil {
			first = err
		}
	}
	return first
}
