//go:build linux

// Command first is the first process of the Linux guest. It does the setup that the program needs, and
// then executes the program. It starts none of the services of a distribution.
package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"loam/internal/debian/first"
	"loam/test/bench/guest/layout"
)

func main() {
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "first:", err)
	} else {
		err := unix.Exec(layout.Program, []string{layout.Program}, nil)
		fmt.Fprintln(os.Stderr, "first:", layout.Program, err)
	}
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func prepare() error {
	if err := first.Mount(); err != nil {
		return err
	}
	if err := first.LoadModules(layout.Modules); err != nil {
		return err
	}
	address, err := netip.ParsePrefix(os.Getenv(layout.AddressVariable))
	if err != nil {
		return err
	}
	return configure(layout.Interface, address)
}

// patience is the longest wait for the card to appear.
const patience = 30 * time.Second

// configure waits for the interface, assigns its address, and sets it up.
func configure(name string, address netip.Prefix) error {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat("/sys/class/net/" + name); err == nil {
			break
		} else if time.Now().After(end) {
			return err
		}
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	mask := [4]byte(net.CIDRMask(address.Bits(), 32))
	for _, r := range []struct {
		call  uint
		value [4]byte
	}{{unix.SIOCSIFADDR, address.Addr().As4()}, {unix.SIOCSIFNETMASK, mask}} {
		request, err := unix.NewIfreq(name)
		if err == nil {
			err = request.SetInet4Addr(r.value[:])
		}
		if err == nil {
			err = unix.IoctlIfreq(s, r.call, request)
		}
		if err != nil {
			return fmt.Errorf("%s: %v: %w", name, address, err)
		}
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, request)
}
