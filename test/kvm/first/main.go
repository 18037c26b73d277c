//go:build linux

// Command first is the first process of the Linux whose KVM is tried: it starts QEMU by it,
// with a program on Loam, for one machine after the other, and asks each program what it
// has to know. The test reads what it prints. Read machine.go next.
package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"loam/internal/debian/first"
	"loam/test/kvm/report"
)

func main() {
	if err := prepare(); err != nil {
		fmt.Println(report.Failed+"Linux:", err)
	} else {
		for _, m := range report.Machines() {
			begin := time.Now()
			if err := try(m); err != nil {
				fmt.Printf("%s%s, %d CPUs: %v\n", report.Failed, m.Model, m.CPUs, err)
			} else {
				fmt.Printf("%s%s, %d CPUs, %.1f s\n", report.OK, m.Model, m.CPUs, time.Since(begin).Seconds())
			}
		}
	}
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// prepare makes the machine one that has /dev/kvm and a loopback.
func prepare() error {
	os.Setenv("PATH", "/usr/bin")
	if err := first.Mount(); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", "/tmp", "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount /tmp: %w", err)
	}
	if err := first.LoadModules(report.Modules); err != nil {
		return err
	}
	if _, err := os.Stat("/dev/kvm"); err != nil {
		return err
	}
	return loopback()
}

// loopback switches it on.
func loopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, request)
}
