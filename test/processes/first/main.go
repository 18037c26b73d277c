//go:build linux

// Command first is the first process of the Linux guest that Loam is compared with. It mounts the file systems that a
// program expects, loads the drivers in /modules and mounts the disk that /disk names, if there is one, runs the command in /command, a list in JSON, and switches the machine off.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"loam/internal/debian/first"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "first:", err)
	}
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func run() error {
	if err := first.Mount(); err != nil {
		return err
	}
	for _, at := range []string{"/tmp", "/dev/shm"} {
		os.MkdirAll(at, 0o777)
		if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=75%"); err != nil {
			return fmt.Errorf("mount %s: %w", at, err)
		}
	}
	if err := first.Loopback(); err != nil {
		return err
	}
	if disk, err := os.ReadFile("/disk"); err == nil {
		if err := mountDisk(string(disk)); err != nil {
			return err
		}
		defer unix.Unmount("/data", 0)
	}
	text, err := os.ReadFile("/command")
	if err != nil {
		return err
	}
	var args []string
	if err := json.Unmarshal(text, &args); err != nil {
		return err
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "LC_ALL=C"}
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/tmp", os.Stdout, os.Stderr
	return cmd.Run()
}

// mountDisk mounts the disk at /data.
func mountDisk(disk string) error {
	if err := first.LoadModules("/modules"); err != nil {
		return err
	}
	for range 1000 { // the driver creates the device a moment after it was loaded
		if _, err := os.Stat(disk); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := unix.Mount(disk, "/data", "ext4", 0, ""); err != nil {
		return fmt.Errorf("mount %s: %w", disk, err)
	}
	return nil
}
