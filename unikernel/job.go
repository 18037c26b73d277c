package unikernel

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// TerminalUse says whether a Linux program gets a terminal of its own, which is connected to the terminal of this process.
type TerminalUse uint8

// Values of TerminalUse: whether the program gets a terminal of its own.
const (
	AutoTerminal TerminalUse = iota // the program gets one if standard input and standard output are a terminal
	OwnTerminal
	NoTerminal
)

// wantsTerminal decides whether the program gets a terminal.
func (o *Options) wantsTerminal() (bool, error) {
	both := isTerminal(0) && isTerminal(1)
	switch {
	case o.Terminal == OwnTerminal && !o.linux:
		return false, errorf("leave it out: a Go program uses the terminal of loam itself", "-t is for Linux programs")
	case o.Terminal == OwnTerminal && !both:
		return false, errorf("leave it out, or use script(1)", "-t: standard input and standard output are not a terminal")
	}
	return o.linux && both && o.Terminal != NoTerminal, nil
}

// isTerminal reports whether a descriptor is a terminal.
func isTerminal(fd int) bool {
	return terminalControl(fd, syscall.TCGETS, make([]byte, termiosLen)) == 0
}

// stopAsJob stops this process group as Ctrl-Z does, and returns when it continues. If no shell
// controls the group as a job, it returns at once, because nothing would continue the group.
func stopAsJob() {
	if signal.Ignored(syscall.SIGTSTP) || !isJob() {
		return
	}
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(0, syscall.SIGTSTP) == nil {
		<-continued
	}
}

// isJob reports whether an ancestor of this process is in its session and in another process group, such as the shell from
// which the user has started it (POSIX.1-2017, 3.264).
func isJob() bool {
	session, _ := sessionOf(0)
	for pid := os.Getppid(); pid > 1; pid = parentOf(pid) {
		if of, err := sessionOf(pid); err != nil || of != session {
			return false
		}
		if group, err := syscall.Getpgid(pid); err != nil || group != syscall.Getpgrp() {
			return err == nil
		}
	}
	return false
}

// parentOf returns the parent of a process, or 0.
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // behind the name: state, parent
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// sessionOf returns the session of a process (getsid(2)).
func sessionOf(pid int) (int, error) {
	id, _, errno := syscall.RawSyscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(id), nil
}
