//go:build linux

// Package netns runs the tests of a package in a network namespace of their own:
// nothing that they create is seen outside, and it all goes away with them. It
// takes neither root, where the system lets users make namespaces, nor any
// thread games, since the whole process lives in the namespace.
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// inside is set in the environment of the process that runs in the namespace.
const inside = "LOAM_TEST_NETNS"

// Main is for TestMain: it runs the tests again in a process that has its own
// network namespace, and ends with that one's status. Where no namespace can be
// made it says so and runs the tests as they are: see Need.
func Main(m *testing.M) {
	if os.Getenv(inside) != "" {
		prepare()
		os.Exit(m.Run())
	}
	err := again()
	var failed *exec.ExitError
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &failed):
		os.Exit(max(failed.ExitCode(), 1))
	}
	fmt.Fprintln(os.Stderr, "no network namespace:", err)
	os.Exit(m.Run())
}

// Need skips a test that has to be in a namespace.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv(inside) == "" {
		t.Skip("needs a network namespace: run as root, or allow unprivileged user namespaces")
	}
}

// again starts this program with the same arguments in new namespaces.
func again() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, os.Args[1:]...)
	c.Env = append(os.Environ(), inside+"=1")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	Enter(c)
	return c.Run()
}

// Can reports whether a namespace can be made.
func Can() bool {
	c := exec.Command("true")
	Enter(c)
	return c.Run() == nil
}

// Enter has a command run in a network namespace of its own, and end with who starts
// it.
func Enter(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
}

// prepare keeps the kernel from sending packets of its own to new interfaces.
func prepare() {
	for _, name := range []string{"all", "default"} {
		os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
	}
}
