// Command child runs other programs, and ends as it is told.
package main

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
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
	out, err := exec.Command("echo", "hello").Output()
	check.That(string(out) == "hello\n" && err == nil, "echo: %q, %v", out, err)
	cmd := exec.Command("tr", "a-z", "A-Z")
	cmd.Stdin = strings.NewReader("shout")
	out, err = cmd.Output()
	check.That(string(out) == "SHOUT" && err == nil, "tr: %q, %v", out, err)
	err = exec.Command("sh", "-c", "exit 3").Run()
	check.That(err != nil && err.Error() == "exit status 3", "exit 3: %v", err)
	out, err = exec.Command("ls", "-l", "/proc/self/fd").Output()
	check.That(err == nil && !strings.Contains(string(out), "socket:"), "a child has a descriptor of the network: %s, %v", out, err)
	// A program that is itself a guest, without what loam tells it.
	self, err := os.Executable()
	check.Nil(err, "executable")
	cmd = exec.Command(self, "cat")
	cmd.Stdin = strings.NewReader("again")
	out, err = cmd.Output()
	check.That(string(out) == "again" && err == nil, "itself: %q, %v", out, err)
	check.Done()
}
