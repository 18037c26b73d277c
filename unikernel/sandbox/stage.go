package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// stageName is the name (argv[0]) under which this executable acts as the stage. settingsVariable is the environment
// variable with the descriptor of its settings.
const (
	stageName        = "loam: sandbox"
	settingsVariable = "SETTINGS"
)

func init() {
	if len(os.Args) > 0 && os.Args[0] == stageName {
		runtime.LockOSThread() // the calls for namespaces and the fork apply to the calling thread
		runStage()
	}
}

// stage is the process between the caller and the program. In a PID namespace it is process 1, so the kernel kills the
// program when the stage ends.
type stage struct {
	*settings
	control int
	layers  Layers
	proc    int // descriptor of a proc file system that shows the program; -1: none
}

// runStage is the main function of the stage (the process between the caller and the program). It never returns.
func runStage() {
	disregardSignals()
	s, err := openStage()
	if err != nil {
		os.Exit(1) // without a control socket, there is no process that could receive a report
	}
	c, err := s.prepare()
	switch {
	case err != nil:
	case s.Probe:
		err = s.probe()
	default:
		err = s.run(c)
	}
	if err != nil {
		s.fail(err)
	}
	os.Exit(0)
}

// disregardSignals makes this process (the stage) survive signals that are meant for the program, since a terminal
// sends them to both. It receives and discards them. It does not ignore them, because the program would inherit that.
// Signals that the caller ignores stay ignored.
func disregardSignals() {
	unread := make(chan os.Signal, 1) // sent by package signal, never received; full: the signal is discarded
	for _, s := range []os.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGWINCH,
	} {
		if !signal.Ignored(s) {
			signal.Notify(unread, s)
		}
	}
}

// openStage reads the settings. The environment contains their descriptor; the control socket has the next number.
func openStage() (*stage, error) {
	first, err := strconv.Atoi(os.Getenv(settingsVariable))
	if err != nil {
		return nil, errSettings
	}
	text, err := io.ReadAll(io.NewSectionReader(os.NewFile(uintptr(first), "settings"), 0, 1<<30))
	if err != nil {
		return nil, err
	}
	set, err := parseSettings(text)
	if err != nil {
		return nil, err
	}
	return &stage{settings: set, control: first + 1, proc: -1}, nil
}

// prepare sets up everything that the program's process inherits from the stage, and returns the data of that process.
func (s *stage) prepare() (*child, error) {
	if err := closeOnExec(s.Descriptors); err != nil {
		return nil, err
	}
	for _, fd := range s.Nonblock {
		if err := syscall.SetNonblock(fd, true); err != nil {
			return nil, os.NewSyscallError("fcntl", err)
		}
	}
	s.layers.User = s.Flags&syscall.CLONE_NEWUSER != 0
	s.layers.PID = s.Flags&syscall.CLONE_NEWPID != 0
	s.layers.Network = s.Flags&syscall.CLONE_NEWNET != 0
	s.layers.IPC = s.Flags&syscall.CLONE_NEWIPC != 0
	s.layers.Unprivileged = s.User >= 0 || s.DropCaps
	s.proc = openProc(s.layers.PID)
	if s.Flags&syscall.CLONE_NEWNS != 0 {
		s.layers.Mount = emptyRoot() == nil
	}
	rules, version := newRules(s.program())
	s.layers.Landlock = version
	return newChild(s, rules)
}

// program returns the descriptor number of the program's file.
func (s *stage) program() int { return s.Descriptors - 1 }

// closeOnExec marks all descriptors from first on as close-on-exec. These are the descriptors of this process
// (the stage), and descriptors that the caller did not mean to pass on.
func closeOnExec(first int) error {
	err := unix.CloseRange(uint(first), ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil || err != unix.ENOSYS && err != unix.EINVAL {
		return os.NewSyscallError("close_range", err)
	}
	var most syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &most); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	for fd := first; uint64(fd) < most.Max; fd++ {
		syscall.CloseOnExec(fd)
	}
	return nil
}

// run starts the program and waits for its end.
func (s *stage) run(c *child) error {
	pid, err := c.fork()
	if err != nil {
		return os.NewSyscallError("fork", err)
	}
	listener, err := c.awaitListener(pid)
	if err == nil {
		err = allowExec(listener)
	}
	if err != nil {
		unix.Kill(pid, unix.SIGKILL)
		return err
	}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	go serveMaps(listener, s.proc, pid) // serveMaps returns when this process ends, at the latest
	if err := s.report(report{Layers: s.layers}, pidfd); err != nil {
		return err
	}
	status, err := waitFor(pid)
	if err != nil {
		return err
	}
	if errno := c.failure(); errno != 0 { // execveat has failed, so the status is not the program's
		return os.NewSyscallError("execveat", errno)
	}
	return syscall.Sendmsg(s.control, binary.LittleEndian.AppendUint32(nil, uint32(status)), nil, nil, 0)
}

// probe reports the layers, and then a status of 0 as if a program had ended.
func (s *stage) probe() error {
	if !canNotify() {
		return ErrKernel
	}
	if err := s.report(report{Layers: s.layers}, -1); err != nil {
		return err
	}
	return syscall.Sendmsg(s.control, make([]byte, statusSize), nil, nil, 0)
}

// waitFor waits until the program ends. If this process (the stage) is process 1 of a PID namespace, orphaned
// processes become its children; the program itself cannot create processes.
func waitFor(pid int) (status syscall.WaitStatus, err error) {
	for {
		if _, err = syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
			return status, os.NewSyscallError("wait4", err)
		}
	}
}

// fail reports to the caller why the program does not run.
func (s *stage) fail(err error) {
	r := report{Error: err.Error(), Kernel: errors.Is(err, ErrKernel)}
	var call *os.SyscallError
	if errors.As(err, &call) {
		r.Error = call.Syscall
		errors.As(call.Err, &r.Errno)
	}
	s.report(r, -1) // an error means that the caller has ended
}

// report sends a report, together with the descriptor of the program's process (-1: none).
func (s *stage) report(r report, pidfd int) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var rights []byte
	if pidfd >= 0 {
		rights = syscall.UnixRights(pidfd)
	}
	return syscall.Sendmsg(s.control, text, rights, nil, syscall.MSG_NOSIGNAL)
}
