//go:build linux

package method

import (
	"fmt"

	"golang.org/x/sys/unix"

	"loam/link/tap"
)

// openTap opens the method tap: the kernel of this host receives the sent frames on a TAP interface. If the interface
// does not exist, it is created, and is removed when the sender is closed.
func openTap(c Config) (Sender, error) {
	c = c.WithDefaults()
	d, err := tap.Open(tap.Config{Name: c.Interface, NoOffloads: true})
	if err != nil {
		return nil, err
	}
	if err := up(d.Info().Name); err != nil {
		d.Close()
		return nil, err
	}
	return newQueueSender(d, c), nil
}

// up sets an interface up, because the kernel accepts no frames from an interface that is down.
func up(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, r); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if r.Uint16()&unix.IFF_UP != 0 {
		return nil
	}
	r.SetUint16(r.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
		return fmt.Errorf("%s: cannot be switched on: %w", name, err)
	}
	return nil
}
