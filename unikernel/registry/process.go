package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process ID alone does not identify a process, because Linux reuses it. The record has the start time of the process,
// too. Stop opens a pidfd, compares the start time, and sends signals only to that pidfd.

// birthOf returns the start time of a process in clock ticks since the start of Linux (field 22 of proc_pid_stat(5)).
func birthOf(pid int) (uint64, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	return parseBirth(stat)
}

// parseBirth returns the start time in the content of a file /proc/PID/stat. The name of the process is in parentheses, and
// may contain spaces and parentheses itself.
func parseBirth(stat []byte) (uint64, error) {
	const afterName = 22 - 3 // the first field behind the name has the number 3
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= afterName {
		return 0, errors.New("/proc/PID/stat has too few fields")
	}
	return strconv.ParseUint(string(fields[afterName]), 10, 64)
}

// process returns a pidfd of the loam command that runs the guest. It returns os.ErrProcessDone if the command has ended.
func (g *Guest) process() (*os.File, error) {
	if g.PID <= 1 {
		return nil, &Error{fmt.Sprintf("the record of %s is damaged", g.Name), "end its loam command yourself"}
	}
	fd, err := unix.PidfdOpen(g.PID, 0)
	if err == unix.ESRCH {
		return nil, os.ErrProcessDone
	}
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	f := os.NewFile(uintptr(fd), "loam")
	// The process with this number now has existed since before pidfd_open, if its start time equals the recorded one.
	// So the pidfd refers to it.
	if birth, err := birthOf(g.PID); err != nil || birth != g.Birth {
		f.Close()
		return nil, os.ErrProcessDone
	}
	return f, nil
}

// killTime is the time that a loam command has to end in order after the signal Kill. It includes the time in which the
// gateway delivers data that the program has sent.
const killTime = 15 * time.Second

// Stop ends a guest. It sends SIGTERM to the loam command, which forwards the signal to the program. If the guest still
// runs after the duration patience, Stop sends the signal kill, at which the loam command kills the program. Stop kills the
// loam command itself if that has no effect. Stop returns when the guest has ended. A guest that has ended is no error.
func (g *Guest) Stop(ctx context.Context, patience time.Duration, kill syscall.Signal) error {
	if held, err := g.held(); err != nil || !held {
		return err
	}
	p, err := g.process()
	if errors.Is(err, os.ErrProcessDone) {
		return g.gone(ctx)
	}
	if err != nil {
		return err
	}
	defer p.Close()
	if g.State == Starting { // there is no program to kill yet, and the signal kill would end the loam command without order
		patience = max(patience, killTime)
	}
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, patience}, {kill, killTime}, {syscall.SIGKILL, killTime}} {
		for _, s := range []syscall.Signal{step.signal, syscall.SIGCONT} { // SIGCONT: the user may have stopped it as a job
			if err := unix.PidfdSendSignal(int(p.Fd()), s, nil, 0); err != nil && err != unix.ESRCH {
				return os.NewSyscallError("pidfd_send_signal", err)
			}
		}
		ended, err := g.endsWithin(ctx, step.wait)
		if err != nil || ended {
			return err
		}
	}
	return &Error{fmt.Sprintf("%s does not end, although its loam command (process %d) got SIGKILL", g.Name, g.PID), "see ps -o stat,wchan " + strconv.Itoa(g.PID)}
}

// gone handles a guest whose lock is held, but whose process does not exist here. If the process has just ended, its lock
// is free by now.
func (g *Guest) gone(ctx context.Context) error {
	ended, err := g.endsWithin(ctx, time.Second)
	if err != nil || ended {
		return err
	}
	return &Error{fmt.Sprintf("%s runs, but its loam command is not visible here", g.Name), "stop it in the container or PID namespace where it was started"}
}

// endsWithin waits until the guest has ended, at most for a time. It reports whether the guest has ended.
func (g *Guest) endsWithin(ctx context.Context, most time.Duration) (bool, error) {
	late := time.Now().Add(most)
	for {
		held, err := g.held()
		if err != nil || !held {
			return !held, err
		}
		if !time.Now().Before(late) {
			return false, nil
		}
		if err := pause(ctx); err != nil {
			return false, err
		}
	}
}
