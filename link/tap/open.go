//go:build linux

package tap

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"loam/link"
	"loam/wire"
)

const (
	clone     = "/dev/net/tun"
	maxName   = 15 // IFNAMSIZ without the terminating zero
	maxQueues = 256
)

// open opens a descriptor for each queue and sets it up. The descriptors must not be registered
// with the poller before that, because an unattached descriptor reports an error to it. On error,
// all descriptors are closed.
func open(c Config) (fds []int, info link.Info, err error) {
	if err := c.setDefaults(); err != nil {
		return nil, info, err
	}
	defer func() {
		if err != nil {
			closeAll(fds)
		}
	}()
	for range c.Queues {
		n, err := syscall.Open(clone, syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		if err != nil {
			return fds, info, openError(c.Name, err)
		}
		fds = append(fds, n)
		if c.Name, err = c.attach(n); err != nil {
			return fds, info, attachError(c, err)
		}
		if info.Offloads, err = negotiate(n, c.NoOffloads); err != nil {
			return fds, info, fmt.Errorf("%s: offloads: %w", c.Name, err)
		}
	}
	if c.Persist {
		if err := ioctlValue(fds[0], syscall.TUNSETPERSIST, 1); err != nil {
			return fds, info, fmt.Errorf("%s: cannot be made persistent: %w", c.Name, err)
		}
	}
	info.Name, info.Medium, info.MAC = c.Name, c.Medium, c.MAC
	return fds, info, describe(fds[0], &info)
}

func (c *Config) setDefaults() error {
	if c.Name == "" {
		c.Name = map[link.Medium]string{link.Ethernet: "tap%d", link.IP: "tun%d"}[c.Medium]
	}
	if len(c.Name) > maxName {
		return fmt.Errorf("tap: interface name %q is longer than %d bytes", c.Name, maxName)
	}
	if c.Queues = max(c.Queues, 1); c.Queues > maxQueues {
		return fmt.Errorf("%s: %d queues: Linux allows %d", c.Name, c.Queues, maxQueues)
	}
	return nil
}

// Flags of linux/if_tun.h.
const (
	multiQueue = 0x0100 // IFF_MULTI_QUEUE
	noFilter   = 0x1000 // IFF_NOFILTER: without the filter of an earlier process (Device.Thin)
)

// attach attaches a descriptor to the interface and returns the interface's name. An interface
// created for several queues must be opened with IFF_MULTI_QUEUE even for one queue.
func (c *Config) attach(fd int) (name string, err error) {
	flags := c.flags()
	name, err = attach(fd, c.Name, flags)
	if err == syscall.EINVAL && flags&multiQueue == 0 {
		name, err = attach(fd, c.Name, flags|multiQueue)
	}
	return name, err
}

// flags returns the flags of TUNSETIFF.
func (c *Config) flags() uint16 {
	flags := uint16(syscall.IFF_NO_PI | syscall.IFF_VNET_HDR | noFilter)
	if c.Medium == link.IP {
		flags |= syscall.IFF_TUN
	} else {
		flags |= syscall.IFF_TAP
	}
	if c.Queues > 1 {
		flags |= multiQueue
	}
	return flags
}

// Bits of TUNSETOFFLOAD: what the kernel may leave undone in frames that the device reads. Frames
// that the device writes may use the same offloads, negotiated or not.
const (
	tunChecksum = 1 << 0 // TUN_F_CSUM
	tunTSO4     = 1 << 1 // TUN_F_TSO4
	tunTSO6     = 1 << 2 // TUN_F_TSO6
	tunECN      = 1 << 3 // TUN_F_TSO_ECN
	tunUSO4     = 1 << 5 // TUN_F_USO4, from Linux 6.2
	tunUSO6     = 1 << 6 // TUN_F_USO6
)

// negotiate sets the header format and enables the offloads that the kernel supports. The
// parameter none disables all offloads.
func negotiate(fd int, none bool) (link.Offloads, error) {
	if err := ioctlValue(fd, syscall.TUNSETVNETHDRSZ, link.VirtioHeaderLen); err != nil {
		return 0, err
	}
	if err := ioctlValue(fd, tunSetVnetLE, 1); err != nil {
		return 0, err
	}
	if none {
		return 0, ioctl(fd, syscall.TUNSETOFFLOAD, 0)
	}
	const tso = tunChecksum | tunTSO4 | tunTSO6 | tunECN
	offloads := link.OffloadChecksum | link.OffloadTSO4 | link.OffloadTSO6
	if ioctl(fd, syscall.TUNSETOFFLOAD, tso|tunUSO4|tunUSO6) == nil {
		return offloads | link.OffloadUSO, nil
	}
	return offloads, ioctl(fd, syscall.TUNSETOFFLOAD, tso)
}

// describe sets the MTU of info, and derives an address for this end if none is set.
func describe(fd int, info *link.Info) (err error) {
	if info.MTU, err = readMTU(info.Name); err != nil {
		return fmt.Errorf("%s: MTU: %w", info.Name, err)
	}
	if info.Medium == link.IP || !info.MAC.IsZero() {
		return nil
	}
	kernel, err := readMAC(fd)
	if err != nil {
		return fmt.Errorf("%s: address: %w", info.Name, err)
	}
	info.MAC = neighbour(kernel)
	return nil
}

// neighbour returns a locally administered unicast address that differs from m, the address of the
// kernel's end. The result is the same on every call.
func neighbour(m wire.MAC) wire.MAC {
	m[0] = m[0]&^1 | 2
	m[5] ^= 1
	return m
}

func closeAll(fds []int) {
	for _, n := range fds {
		syscall.Close(n)
	}
}

// openError returns an error for a failed open of /dev/net/tun, with advice.
func openError(name string, err error) error {
	name = strings.TrimSuffix(name, "%d")
	switch {
	case errors.Is(err, fs.ErrNotExist), err == syscall.ENODEV, err == syscall.ENXIO:
		return fmt.Errorf("%s: %w: no %s: load the kernel module tun, or pass the device into the container", name, err, clone)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w: cannot open %s: run as root, or use a network that needs no privilege", name, err, clone)
	}
	return fmt.Errorf("%s: %s: %w", name, clone, err)
}

// attachError returns an error for a failed TUNSETIFF, with advice.
func attachError(c Config, err error) error {
	mode := "tap"
	if c.Medium == link.IP {
		mode = "tun"
	}
	switch err {
	case syscall.EPERM:
		return fmt.Errorf("%s: %w: needs CAP_NET_ADMIN: run as root, or have the interface made for you (ip tuntap add dev %s mode %s user $USER)", c.Name, err, c.Name, mode)
	case syscall.EBUSY:
		return fmt.Errorf("%s: %w: another process has it open", c.Name, err)
	case syscall.EINVAL:
		return fmt.Errorf("%s: %w: it exists and is not a %s interface of %d queue(s)", c.Name, err, mode, c.Queues)
	}
	return fmt.Errorf("%s: %w", c.Name, err)
}
