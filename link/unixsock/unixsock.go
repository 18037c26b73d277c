//go:build linux

// Package unixsock is a device that carries frames over a Unix socket: to QEMU, or between two Loam
// processes.
//
// The framings are those of QEMU. With -netdev stream, each frame is preceded by its length, four
// bytes, big-endian. With -netdev dgram, each frame is a datagram. Between two Loam processes,
// Config.Header adds a virtio-net header to each frame, after the length, so that offloads cross
// too. Both ends must use the same setting, because the stream does not indicate it.
//
// Stream is faster than Datagram, and two Loam processes should use it. In a stream, the kernel
// takes 64 frames in one call, and delivers as many as there are. Of datagrams, it queues at most
// net.unix.max_dgram_qlen (10 by default) for a receiver. See the benchmark.
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

// Framing is the way in which frames are delimited.
type Framing uint8

// Values of Framing.
const (
	Stream   Framing = iota // SOCK_STREAM: a length precedes each frame
	Datagram                // SOCK_DGRAM or SOCK_SEQPACKET: each frame is a message
)

// Config describes a device. Both ends must use equal settings, except for the name and the
// address.
type Config struct {
	Name    string // name of the device; default "unix"
	Framing Framing
	Medium  link.Medium
	MTU     int      // in bytes; default 1500
	MAC     wire.MAC // address of this end
	// Header adds a virtio-net header to each frame. The device then has all offloads. QEMU does
	// not support it.
	Header bool
}

// AllOffloads is the set of offloads of a device with Config.Header.
const AllOffloads = link.OffloadChecksum | link.OffloadTSO4 | link.OffloadTSO6 | link.OffloadUSO

// sendBuffer is the requested size of a socket's send buffer in bytes. Linux's default holds three
// frames of 64 kB. With a larger buffer, the sender and the receiver wait for each other less
// often: 10 instead of 13 µs for such a frame.
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

// headerLen returns the length of the virtio-net header before each frame, or 0.
func (c *Config) headerLen() int {
	if c.Header {
		return link.VirtioHeaderLen
	}
	return 0
}

// end is a queue of either framing.
type end interface {
	link.Queue
	stats() link.Stats
	close() error
}

// Device is one end of a socket, or of several sockets, one per queue.
type Device struct {
	info   link.Info
	ends   []end
	queues []link.Queue // the elements of ends, as interfaces
	path   string       // path of a socket file that Close removes; empty: none
}

// FromFiles returns a device over connected sockets, one per queue. The files are, for example,
// descriptors inherited from a parent process, or one end of each of several socket pairs.
// FromFiles takes ownership of the files, also on error.
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

// add adds a queue. peer is the path that a datagram socket must still connect to, or empty.
func (d *Device) add(c *Config, f *fd.File, peer string) {
	var e end
	f.Do(func(fd uintptr) { // the kernel may grant a smaller send buffer
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

// Close implements link.Device. Frames that the sockets have taken still arrive.
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
