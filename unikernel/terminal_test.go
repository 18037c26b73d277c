package unikernel

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// openTerminal creates a terminal of 77 columns and 33 rows. It returns the master, for the user who types, and the
// slave, for programs (pty(7)).
func openTerminal(t *testing.T) (typist, terminal *os.File) {
	t.Helper()
	typist, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { typist.Close() })
	const unlock, number = 0x40045431, 0x80045430 // TIOCSPTLCK, TIOCGPTN
	n := make([]byte, 4)
	size := []byte{33, 0, 77, 0, 0, 0, 0, 0}
	for _, c := range []struct {
		request int
		arg     []byte
	}{{unlock, n}, {number, n}, {syscall.TIOCSWINSZ, size}} {
		if errno := terminalControl(int(typist.Fd()), c.request, c.arg); errno != 0 {
			t.Fatal(errno)
		}
	}
	terminal, err = os.OpenFile(fmt.Sprint("/dev/pts/", binary.NativeEndian.Uint32(n)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return typist, terminal
}

// A terminal works for a program on both platforms: its size, lines and single keys, Ctrl-C. A virtual
// machine restores the settings that the program has changed.
func TestTerminal(t *testing.T) {
	for _, p := range []Platform{Process, Machine} {
		t.Run(p.String(), func(t *testing.T) { testTerminal(t, p) })
	}
}

// A program whose standard input is a pipe reads keys from /dev/tty, as in `ls | loam run fzf`. It is in
// the terminal's foreground, together with the process that writes to the pipe.
func TestTerminalBesidePipe(t *testing.T) {
	for p, command := range map[Platform]func(NetworkKind, string, ...string) *exec.Cmd{Process: guestCommand, Machine: machineCommand} {
		t.Run(p.String(), func(t *testing.T) { testBesidePipe(t, command(NoNetwork, "terminal", "/dev/tty")) })
	}
}

func testBesidePipe(t *testing.T, cmd *exec.Cmd) {
	typist, terminal := openTerminal(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("a line\n"), terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
	useTerminal(t, cmd, typist, "")
}

func testTerminal(t *testing.T, p Platform) {
	typist, terminal := openTerminal(t)
	before := make([]byte, termiosLen)
	terminalControl(int(terminal.Fd()), syscall.TCGETS, before)
	cmd := guestCommand(NoNetwork, "terminal")
	if p == Machine {
		cmd = machineCommand(NoNetwork, "terminal")
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	useTerminal(t, cmd, typist, "a line\n")
	after := make([]byte, termiosLen)
	terminalControl(int(terminal.Fd()), syscall.TCGETS, after)
	if p == Machine && !bytes.Equal(before, after) {
		t.Errorf("the terminal was left as %x, and was %x", after, before)
	}
}

// useTerminal runs the program "terminal" and types the input that it asks for: a line, a key, Ctrl-C.
func useTerminal(t *testing.T, cmd *exec.Cmd, typist *os.File, line string) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	shown := bufio.NewScanner(typist)
	for _, step := range []struct{ shows, types string }{
		{"77 by 33", line}, {`"a line\n" <nil>`, ""}, {"press a key", "x"}, {`"x"`, "\x03"},
	} {
		for strings.TrimRight(shown.Text(), "\r") != step.shows { // skips the echo of the input
			if !shown.Scan() {
				t.Fatalf("the terminal never shows %s: %v", step.shows, shown.Err())
			}
		}
		typist.WriteString(step.types)
	}
	cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 3 {
		t.Errorf("status %d, want 3", status)
	}
}

// A job that the user has stopped handles SIGTERM, if only the command gets the signals SIGTERM and SIGCONT (loam stop).
func TestTerminateStoppedJob(t *testing.T) {
	typist, terminal := openTerminal(t)
	cmd := guestCommand(NoNetwork, "terminal")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	for shown := bufio.NewScanner(typist); strings.TrimRight(shown.Text(), "\r") != "77 by 33"; {
		if !shown.Scan() {
			t.Fatal(shown.Err())
		}
	}
	for _, s := range []struct {
		pid    int
		signal syscall.Signal
	}{{-cmd.Process.Pid, syscall.SIGSTOP}, {cmd.Process.Pid, syscall.SIGTERM}, {cmd.Process.Pid, syscall.SIGCONT}} {
		if err := syscall.Kill(s.pid, s.signal); err != nil {
			t.Error(err)
		}
	}
	cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 128+int(syscall.SIGTERM) {
		t.Errorf("status %d", status)
	}
}
