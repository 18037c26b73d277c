// Package detach runs the calling command a second time, in the background.
//
// Start starts this executable again with the same arguments, as the leader of a session of its own, and waits until the
// new process reports that its work has started. Until then, the new process prints messages to the standard error of its
// caller, and ends if its caller ends. The new process recognises itself by Child.
//
//	caller: Start ──same arguments──▶ new process: Child, Divert
//	   ▲                                  │
//	   └──── name ◀──── Started ──────────┘
package detach

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// variable is the environment variable that marks the new process. callerFD is the new process's descriptor of the
// connection to its caller.
const (
	variable = "LOAM_DETACHED"
	callerFD = 3
)

// Start starts this command again, and waits until it has started or ended. If it has started, name is the name that it
// reports. Otherwise Start returns the exit status, and the new process has printed the reason. When ctx ends, the signal
// interrupt(ctx) is sent to the new process, and Start still waits for it.
func Start(ctx context.Context, interrupt func(context.Context) os.Signal) (name string, status int, err error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", 0, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "detached"), os.NewFile(uintptr(pair[1]), "caller")
	defer ours.Close()
	// Descriptors that a shell has left open, such as the lock file of flock(1), are not for a process in the background.
	// The call fails before Linux 5.11; then they stay open.
	unix.CloseRange(callerFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), variable+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // no standard input: exec uses /dev/null
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return "", 0, err
	}
	defer context.AfterFunc(ctx, func() { cmd.Process.Signal(interrupt(ctx)) })()
	line, err := bufio.NewReader(ours).ReadString('\n')
	if err == nil {
		return strings.TrimSuffix(line, "\n"), 0, nil
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case !errors.As(err, &exit):
		return "", 0, errors.Join(errors.New("the background command ended without a report"), err)
	case exit.ExitCode() < 0:
		return "", 128 + int(exit.Sys().(syscall.WaitStatus).Signal()), nil
	}
	return "", exit.ExitCode(), nil
}

// Process is a process that Start has started.
type Process struct {
	caller  *os.File // connection to the caller
	errors  *os.File // standard error of the caller
	started atomic.Bool

	output  *os.File       // read end of the pipe of the standard streams; nil: they are not diverted
	copying sync.WaitGroup // the goroutine that copies output
}

// Child returns the process that Start has started, if the calling process is one, and nil otherwise. It removes the mark
// from the environment, so programs that this process starts do not have it.
//
// When the caller ends before Started, this process sends itself SIGTERM.
func Child() *Process {
	if os.Getenv(variable) == "" {
		return nil
	}
	os.Unsetenv(variable)
	syscall.CloseOnExec(callerFD)
	p := &Process{caller: os.NewFile(callerFD, "caller"), errors: os.Stderr}
	go p.watch()
	return p
}

// watch waits until the caller ends. The caller sends nothing.
func (p *Process) watch() {
	p.caller.Read(make([]byte, 1))
	if !p.started.Load() {
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}
}

// Errors returns the standard error of the caller. Started closes it.
func (p *Process) Errors() io.Writer { return p.errors }

// Divert replaces standard output and standard error by a pipe, whose content is copied to w. Both have the same pipe, so
// their order is kept. Programs that this process starts inherit the pipe, and not w.
func (p *Process) Divert(w io.Writer) error {
	fd, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	p.errors = os.NewFile(uintptr(fd), "stderr")
	// Only the read end does not block: the mode belongs to the open pipe, which other programs inherit.
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return os.NewSyscallError("pipe2", err)
	}
	if err := errors.Join(unix.SetNonblock(pipe[0], true), replaceOutput(pipe[1])); err != nil {
		return err
	}
	p.output = os.NewFile(uintptr(pipe[0]), "output")
	p.copying.Go(func() { copyOutput(w, p.output) })
	return nil
}

// replaceOutput makes a descriptor the standard output and the standard error, and closes it.
func replaceOutput(fd int) error {
	defer unix.Close(fd)
	return os.NewSyscallError("dup3", errors.Join(unix.Dup3(fd, 1, 0), unix.Dup3(fd, 2, 0)))
}

// Started reports to the caller that this process has started its work, and gives up the caller's standard error. It
// returns an error if the caller has ended: then the work must end, because no user has its name.
func (p *Process) Started(name string) error {
	p.started.Store(true)
	if _, err := io.WriteString(p.caller, name+"\n"); err != nil {
		return err
	}
	return p.errors.Close()
}

// Finish ends the diversion: standard output and standard error become /dev/null. It returns when all output that was
// written before has been copied.
func (p *Process) Finish() error {
	if p.output == nil {
		return nil
	}
	null, err := unix.Open("/dev/null", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	if err := replaceOutput(null); err != nil {
		return err
	}
	p.output.SetReadDeadline(past) // other processes may still have the pipe
	p.copying.Wait()
	return p.output.Close()
}
