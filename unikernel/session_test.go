package unikernel

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/abi/linux"
)

// Interactive sessions with Linux programs. The test types into a terminal of the host.

// act is a step of a session: it waits until the terminal has shown a text, and then types keys. If it has a size
// instead of keys, it resizes the window to rows and columns.
type act struct {
	shows, types string
	size         *linux.Winsize
}

// session is a program that runs on a terminal of the test.
type session struct {
	*testing.T
	cmd              *exec.Cmd
	typist, terminal *os.File
	chunks           chan []byte // sent by receive, which closes it at the end; received by await; unbuffered
	shown            bytes.Buffer
	seen             int // number of bytes of the field shown that the method await has already matched
}

// startSession starts a program on a terminal of its own, as the leader of a session.
func startSession(t *testing.T, cmd *exec.Cmd) *session {
	t.Helper()
	typist, terminal := openTerminal(t)
	s := &session{T: t, cmd: cmd, typist: typist, terminal: terminal, chunks: make(chan []byte)}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	go s.receive()
	return s
}

// receive sends the terminal's output to chunks.
func (s *session) receive() {
	defer close(s.chunks)
	for {
		room := make([]byte, 4096)
		n, err := s.typist.Read(room)
		if err != nil {
			return
		}
		s.chunks <- room[:n]
	}
}

// await waits until the terminal shows a text.
func (s *session) await(text string) {
	s.Helper()
	const patience = 5 * time.Minute
	late := time.After(patience)
	for {
		if at := strings.Index(s.shown.String()[s.seen:], text); at >= 0 {
			s.seen += at + len(text)
			return
		}
		select {
		case b, ok := <-s.chunks:
			if !ok {
				s.Fatalf("the terminal has ended, and not shown %q:\n%s", text, s.shown.String())
			}
			s.shown.Write(b)
		case <-late:
			s.Fatalf("the terminal does not show %q:\n%s", text, s.shown.String())
		}
	}
}

// play executes the steps of a session.
func (s *session) play(acts []act) {
	s.Helper()
	for _, a := range acts {
		s.await(a.shows)
		if a.size != nil {
			b := make([]byte, linux.SizeofWinsize)
			a.size.Put(b)
			terminalControl(int(s.typist.Fd()), linux.TIOCSWINSZ, b)
		}
		s.typist.WriteString(a.types)
	}
}

// end waits until the program ends, and returns its status and everything that the terminal has shown.
func (s *session) end() (status int, shown string) {
	s.Helper()
	done := make(chan struct{})
	go func() {
		s.cmd.Wait()
		close(done)
	}()
	for {
		select {
		case b := <-s.chunks:
			s.shown.Write(b)
			continue
		case <-done:
		case <-time.After(2 * time.Minute):
			s.Fatalf("the program does not end:\n%s", s.shown.String())
		}
		break
	}
	// Output may still be in the terminal's buffer after the program has ended.
	for {
		s.await("")
		select {
		case b := <-s.chunks:
			s.shown.Write(b)
			continue
		case <-time.After(200 * time.Millisecond):
		}
		return s.cmd.ProcessState.ExitCode(), s.shown.String()
	}
}

// settings returns the settings of the session's terminal: the bytes of its struct termios, as a string for comparisons.
func (s *session) settings() string {
	b := make([]byte, termiosLen)
	terminalControl(int(s.terminal.Fd()), linux.TCGETS, b)
	return string(b)
}

// onTerminal returns two commands with the same environment: one runs a Linux program of a root folder on Loam, the
// other runs it on this system.
func onTerminal(t *testing.T, root string, args ...string) (loam, host *exec.Cmd) {
	// HISTFILE is empty because bash, run by root, changes the mode of the history file, even of /dev/null.
	env := []string{"PS1=$ ", "TERM=dumb", "LC_ALL=C", "HISTFILE=", "HOME=/"}
	loam = linuxCommand(args[0], args[1:]...)
	loam.Env = append(append(loam.Env, withFiles+"="+root), env...)
	host = exec.Command(args[0], args[1:]...)
	host.Env, host.Dir = append(os.Environ(), env...), t.TempDir()
	return loam, host
}

// job is a shell command that prints a line when it starts, when it is continued, and when it is interrupted.
const job = `bash --norc -c 'trap "echo back" CONT; trap "echo int; exit 7" INT; echo up; while :; do sleep 0.1; done'`

// Bash runs jobs in the foreground and background, by keys and by commands. Lines are edited and
// echoed. The program learns changes of the window's size.
func TestSessionBash(t *testing.T) {
	root := rootWith(t, "/bin/bash", "/bin/cat", "/bin/sleep", "/bin/stty", "/usr/bin/tty")
	loam, _ := onTerminal(t, root, "/bin/bash", "--norc", "--noprofile")
	s := startSession(t, loam)
	before := s.settings()
	s.play([]act{
		{"$ ", "stty -a\r", nil},
		{"$ ", "ulimit -c 0; set -o | grep monitor\x15echo kil\x7fled\r", nil},
		{"\nkiled", "", nil},
		{"$ ", job + "\r", nil},
		{"\nup", "\x1a", nil},
		{"Stopped", "", nil},
		{"$ ", "jobs\r", nil},
		{"$ ", "fg\r", nil},
		{"\nback", "\x03", nil},
		{"int", "", nil},
		{"$ ", "echo $?\r", nil},
		{"$ ", "bash --norc -c 'echo up; exec sleep 100' | cat\r", nil},
		{"\nup", "\x1a", nil},
		{"Stopped", "", nil},
		{"$ ", "bg\r", nil},
		{"$ ", "kill %1; wait\r", nil},
		{"$ ", "cat & wait\r", nil},
		{"Stopped", "", nil},
		{"$ ", "fg\r", nil},
		{"\ncat\r\n", "\x04", nil},
		{"$ ", "stty tostop; (echo lost) & wait\r", nil},
		{"Stopped", "", nil},
		{"$ ", "stty -tostop; fg\r", nil},
		{"\nlost", "", nil},
		{"$ ", "ulimit -c 0; bash --norc -c 'echo up; exec cat'\r", nil},
		{"\nup\r\n", "running\r", nil}, // bash ignores SIGQUIT, so cat must run before the signal is sent
		{"\nrunning", "\x1c", nil},
		{"Quit", "", nil},
		{"$ ", "bash --norc -c 'echo up; exec cat'\r", nil},
		{"\nup\r\n", "a line\r", nil},
		{"\na line", "\x04", nil},
		{"$ ", "half\x03", nil},
		{"^C", "", &linux.Winsize{Rows: 20, Columns: 60}},
		{"$ ", "until [[ $(stty size) == '20 60' ]]; do sleep 0.1; done; echo resized\r", nil},
		{"\nresized", "", nil},
		{"$ ", "exit 5\r", nil},
	})
	if status, shown := s.end(); status != 5 || s.settings() != before {
		t.Errorf("status %d: %q", status, shown)
	}
}

// If only standard error is redirected, the program has a terminal for the other streams. Without a
// terminal, or with -t=false, the program gets the streams unchanged.
func TestSessionStreams(t *testing.T) {
	root := rootWith(t, "/bin/bash", "/bin/ls")
	loam, _ := onTerminal(t, root, "/bin/bash", "-c", "for i in 0 1 2; do [ -t $i ] && echo $i; done; echo error >&2")
	typist, terminal := openTerminal(t)
	var errors bytes.Buffer
	loam.Stdin, loam.Stdout, loam.Stderr = terminal, terminal, &errors
	loam.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := loam.Run(); err != nil || errors.String() != "error\n" {
		t.Errorf("%v: %q", err, errors.String())
	}
	room := make([]byte, 100)
	if n, err := typist.Read(room); string(room[:n]) != "0\r\n1\r\n" {
		t.Errorf("%q, %v", room[:n], err)
	}
	out, err := linuxOutput(t, root, "-c", "for i in 0 1 2; do [ -t $i ] && echo $i; done; ls /dev/pts")
	if err != nil || out != "ptmx\n" {
		t.Errorf("%v: %q", err, out)
	}
}

// linuxOutput returns the output of bash on Loam, without a terminal.
func linuxOutput(t *testing.T, root string, args ...string) (string, error) {
	loam, _ := onTerminal(t, root, append([]string{"/bin/bash"}, args...)...)
	out, err := loam.CombinedOutput()
	return string(out), err
}

// SIGTERM and SIGHUP end a shell that ignores SIGTERM, and the terminal is as before.
func TestSessionEnds(t *testing.T) {
	root := rootWith(t, "/bin/bash", "/bin/sleep")
	for _, n := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		loam, _ := onTerminal(t, root, "/bin/bash", "--norc")
		s := startSession(t, loam)
		before := s.settings()
		s.await("$ ")
		if s.settings() == before {
			t.Error("the terminal is not raw")
		}
		loam.Process.Signal(n)
		if status, shown := s.end(); status != 128+int(syscall.SIGHUP) {
			t.Errorf("%v: status %d: %q", n, status, shown)
		}
		if s.settings() != before {
			t.Errorf("%v: the terminal is not as before", n)
		}
	}
}

// Ctrl-Z stops the loam command when it stops the first program. The shell from which the user has
// started loam gets the terminal back, and fg continues the program.
func TestSessionSuspend(t *testing.T) {
	root := rootWith(t, "/bin/bash", "/bin/cat", "/bin/sleep")
	loam, _ := onTerminal(t, root, "/bin/bash", "--norc", "-c", "trap 'echo back; stty size' CONT; echo up; while :; do sleep 0.1; done")
	script := filepath.Join(t.TempDir(), "loam")
	text := "#!/bin/sh\nexec '" + strings.Join(append([]string{loam.Path}, loam.Args[1:]...), "' '") + "'\n"
	text = strings.ReplaceAll(text, "trap 'echo back; stty size' CONT", `trap "echo back" CONT`)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("/bin/bash", "--norc", "--noprofile")
	shell.Env = append(loam.Env, "PS1=host$ ")
	s := startSession(t, shell)
	s.play([]act{
		{"host$ ", script + "\r", nil},
		{"\nup", "\x1a", nil},
		{"Stopped", "", nil},
		{"host$ ", "echo in the $((6*7)) host shell\r", nil},
		{"in the 42 host", "fg\r", nil},
		{"\nback", "\x03", nil},
		{"host$ ", "echo status $?; exit 3\r", nil},
		{"status 130", "", nil},
	})
	if status, shown := s.end(); status != 3 {
		t.Errorf("status %d: %q", status, shown)
	}
}
