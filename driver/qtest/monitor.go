package qtest

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// Monitor gives commands of QEMU's machine protocol (docs/interop/qmp-spec.txt of
// QEMU) that take no arguments, such as system_powerdown.
func (m *Machine) Monitor(t testing.TB, command string) {
	t.Helper()
	c, err := net.Dial("unix", filepath.Join(m.dir, "monitor"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(startBound))
	answers := bufio.NewReader(c)
	answers.ReadString('\n') // the greeting
	for _, command := range []string{"qmp_capabilities", command} {
		fmt.Fprintf(c, `{"execute": %q}`+"\n", command)
		if answer, err := answers.ReadString('\n'); err != nil {
			t.Fatalf("%s: %q, %v", command, answer, err)
		}
	}
}

// Wait waits until QEMU has ended by itself, and returns its exit status.
func (m *Machine) Wait(t testing.TB) int {
	t.Helper()
	select {
	case <-m.exited:
		return m.command.ProcessState.ExitCode()
	case <-time.After(startBound):
		t.Fatal("QEMU does not end")
		return 0
	}
}
