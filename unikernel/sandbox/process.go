package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is a program that Start has started.
type Process struct {
	layers  Layers
	stage   *exec.Cmd
	control *os.File
	pidfd   *os.File // pidfd of the program; nil: the stage (the program's parent process) has sent none

	mu sync.Mutex // held while pidfd is used or closed
}

// report is the first message from the stage, the program's parent process: the program runs, or Error is the reason why it does not.
type report struct {
	Layers Layers
	Error  string
	Errno  syscall.Errno // errno of the failed step; 0: none
	Kernel bool          // the kernel lacks a feature that the filter needs
}

// error returns the error in a report, or nil if the program runs.
func (r report) error() error {
	switch {
	case r.Kernel:
		return ErrKernel
	case r.Error != "" && r.Errno != 0:
		return &os.SyscallError{Syscall: r.Error, Err: r.Errno}
	case r.Error != "":
		return errors.New(r.Error)
	}
	return nil
}

// Sizes of messages in bytes: the maximum for a report, and a wait status. A wait status is shorter than any report.
const (
	maxReport  = 4096
	statusSize = 4
)

// newProcess waits for the report of the stage (the program's parent process). It returns an error if the stage ends without sending one.
func newProcess(stage *exec.Cmd, control *os.File, why string) (*Process, error) {
	p := &Process{stage: stage, control: control}
	r, err := p.receiveReport()
	if err != nil {
		err = fmt.Errorf("the stage ended: %w", err)
	} else if err = r.error(); err == nil {
		p.layers = r.Layers
		p.layers.Why = why
		return p, nil
	}
	stage.Process.Kill()
	stage.Wait()
	p.close()
	return nil, err
}

// receiveReport reads the report, and the descriptor of the program's process that comes with it.
func (p *Process) receiveReport() (r report, err error) {
	message, control := make([]byte, maxReport), make([]byte, syscall.CmsgSpace(4))
	n, controls, _, _, err := ignoringEINTR(func() (int, int, int, syscall.Sockaddr, error) {
		return syscall.Recvmsg(int(p.control.Fd()), message, control, syscall.MSG_CMSG_CLOEXEC)
	})
	if err != nil {
		return r, err
	}
	if n == 0 {
		return r, errors.New("without a report")
	}
	if list, err := syscall.ParseSocketControlMessage(control[:controls]); err == nil && len(list) == 1 {
		if fds, err := syscall.ParseUnixRights(&list[0]); err == nil && len(fds) == 1 {
			p.pidfd = os.NewFile(uintptr(fds[0]), "program")
		}
	}
	return r, json.Unmarshal(message[:n], &r)
}

func ignoringEINTR(f func() (int, int, int, syscall.Sockaddr, error)) (n, m, flags int, from syscall.Sockaddr, err error) {
	for {
		if n, m, flags, from, err = f(); err != syscall.EINTR {
			return n, m, flags, from, err
		}
	}
}

// Layers returns the layers in force.
func (p *Process) Layers() Layers { return p.layers }

// Signal sends a signal to the program. An error means that the program has ended. It is safe to call while another
// goroutine is in Wait. SIGCONT also continues the stage: a SIGSTOP to the process group has stopped both, and a stopped stage
// would not report the program's end.
func (p *Process) Signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s == syscall.SIGCONT {
		p.stage.Process.Signal(s)
	}
	return unix.PidfdSendSignal(int(p.pidfd.Fd()), s, nil, 0)
}

// Wait waits until the program ends, and returns its status. If the stage (the program's parent process) was killed,
// the kernel has killed the program too, and the status is SIGKILL.
func (p *Process) Wait() (syscall.WaitStatus, error) {
	defer p.close()
	message := make([]byte, maxReport)
	n, _, _, _, err := ignoringEINTR(func() (int, int, int, syscall.Sockaddr, error) {
		return syscall.Recvmsg(int(p.control.Fd()), message, nil, 0)
	})
	werr := p.stage.Wait()
	if err == nil && n == statusSize {
		return syscall.WaitStatus(binary.LittleEndian.Uint32(message)), nil
	}
	if err == nil && n > 0 { // the stage has sent a report instead of a status: the program could not be executed
		var r report
		if err = json.Unmarshal(message[:n], &r); err == nil {
			err = r.error()
		}
		return 0, err
	}
	var exit *exec.ExitError
	if errors.As(werr, &exit) {
		return exit.Sys().(syscall.WaitStatus), nil
	}
	return 0, errors.Join(err, werr)
}

func (p *Process) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.control.Close()
	if p.pidfd != nil {
		p.pidfd.Close()
	}
}
