//go:build linux

// Command first is the first process of the Linux guest whose KVM is tested. It starts QEMU with KVM,
// with a program on Loam, for one machine after another, and checks each program. The test reads its
// output. Read machine.go next.
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

// prepare sets up the file systems, /dev/kvm and the loopback.
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
	return first.Loopback()
}
