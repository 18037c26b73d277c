package qtest

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Monitor executes a command of QEMU's machine protocol (QEMU's docs/interop/qmp-spec.txt) without arguments, such
// as system_powerdown.
func (m *Machine) Monitor(t testing.TB, command string) {
	t.Helper()
	m.converse(t, fmt.Sprintf(`{"execute": %q}`, command))
}

// SetLink connects or disconnects the cable of the -netdev with the given ID.
func (m *Machine) SetLink(t testing.TB, cable string, up bool) {
	t.Helper()
	m.converse(t, fmt.Sprintf(`{"execute": "set_link", "arguments": {"name": %q, "up": %v}}`, cable, up))
}

// Connected waits until QEMU has noticed that the socket of its -netdev stream is connected. cable is the ID of the
// netdev. QEMU notices the connection some time after the other end has accepted it. Until then, QEMU drops the frames
// that the card sends.
func (m *Machine) Connected(t testing.TB, cable string) {
	t.Helper()
	const question = `{"execute": "human-monitor-command", "arguments": {"command-line": "info network"}}`
	for start := time.Now(); time.Since(start) < startBound; time.Sleep(time.Millisecond) {
		if strings.Contains(m.converse(t, question), cable+": index=0,type=stream,unix:") {
			return
		}
	}
	t.Fatalf("QEMU does not connect %s", cable)
}

// converse executes one command of the machine protocol and returns the response.
func (m *Machine) converse(t testing.TB, command string) (answer string) {
	t.Helper()
	c, err := net.Dial("unix", filepath.Join(m.dir, "monitor"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(startBound))
	lines := bufio.NewReader(c)
	lines.ReadString('\n') // skip the greeting of the protocol
	for _, command := range []string{`{"execute": "qmp_capabilities"}`, command} {
		fmt.Fprintln(c, command)
		for answer = `{"event"`; strings.Contains(answer, `"event"`); {
			if answer, err = lines.ReadString('\n'); err != nil {
				t.Fatalf("%s: %q, %v", command, answer, err)
			}
		}
	}
	return answer
}

// Wait waits until QEMU has exited by itself, and returns its exit status.
func (m *Machine) Wait(t testing.TB) int {
	t.Helper()
	m.mayEnd.Store(true)
	select {
	case <-m.exited:
		return m.command.ProcessState.ExitCode()
	case <-time.After(startBound):
		t.Fatal("QEMU does not end")
		return 0
	}
}
