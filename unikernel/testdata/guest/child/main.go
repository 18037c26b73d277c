// Command child tries to start other programs, and ends as its arguments say.
package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"example.com/guest/internal/check"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "exit" {
		status, _ := strconv.Atoi(os.Args[2])
		os.Exit(status)
	}
	if len(os.Args) > 2 && os.Args[1] == "kill" {
		n, _ := strconv.Atoi(os.Args[2])
		syscall.Kill(syscall.Getpid(), syscall.Signal(n))
		select {}
	}
	if len(os.Args) > 1 && os.Args[1] == "cat" {
		io.Copy(os.Stdout, os.Stdin)
		return
	}
	_, there := os.LookupEnv("LOAM_GUEST")
	check.That(!there, "the program sees LOAM_GUEST")
	_, err := exec.Command("echo", "hello").Output()
	check.That(errors.Is(err, exec.ErrNotFound), "a program of the host's: %v", err)
	self, err := os.Executable()
	check.Nil(err, "executable")
	err = exec.Command(self, "cat").Run()
	check.That(errors.Is(err, syscall.ENOSYS), "itself: %v", err)
	err = syscall.Exec(self, nil, nil)
	check.That(errors.Is(err, syscall.ENOSYS), "in its own place: %v", err)
	check.That(errors.Is(syscall.Kill(1, 0), syscall.ESRCH), "a process of the host's")
	check.Done()
}
