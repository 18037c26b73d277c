//go:build linux

// Package netns runs the tests of a package in a network namespace of their own. Nothing that they
// create is visible outside, and everything is removed with them. It does not need root if the system
// lets users create namespaces. It does not bind goroutines to threads, because the whole process is in
// the namespace.
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// inside is an environment variable. It is set for the process that runs in the namespace.
const inside = "LOAM_TEST_NETNS"

// Main is for TestMain. It runs the tests again in a process with its own network namespace, and exits
// with the status of that process. If no namespace can be created, it prints why and runs the tests in
// this process: see Need.
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

// Need skips the test if it does not run in a namespace that Main has created.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv(inside) == "" {
		t.Skip("needs a network namespace: run as root, or allow unprivileged user namespaces")
	}
}

// again starts this program with the same arguments in new namespaces, and waits for it.
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

// Can reports whether a namespace can be created.
func Can() bool {
	c := exec.Command("true")
	Enter(c)
	return c.Run() == nil
}

// Enter makes a command run in a network namespace of its own. The command is killed when the thread
// that starts it ends.
func Enter(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
}

// prepare turns IPv6 off, so that the kernel sends no packets of its own on new interfaces.
func prepare() {
	for _, name := range []string{"all", "default"} {
		os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
	}
}
