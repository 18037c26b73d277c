package unikernel

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"loam/unikernel/guest"
)

// A guest of platform process is a child of the loam command. It has the
// command's standard streams, folder and environment. Whatever ends the command
// ends the guest, kill -9 included; how the guest ends is how the command ends.

// launch starts program and waits for its end.
func launch(program string, o *Options, n *network) (status int, err error) {
	cmd := exec.Command(program, o.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = environment(o.Env, n.config)
	cmd.ExtraFiles = n.files
	shared := sharesTerminal()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: !shared}

	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)

	// The guest dies with the thread that started it, so this one must live as
	// long (prctl(2), PR_SET_PDEATHSIG).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, errorf("try again", "%s cannot be started: %v", program, err)
	}
	n.handedOver()
	done := make(chan struct{})
	go forward(cmd.Process, signals, shared, done)
	err = cmd.Wait()
	close(done)
	return exitStatus(cmd.ProcessState, err)
}

// dieWithParent has this process killed when its parent ends.
func dieWithParent() error {
	parent := os.Getppid()
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0); errno != 0 {
		return errno
	}
	if os.Getppid() != parent { // it was quicker
		return errors.New("the parent has ended")
	}
	return nil
}

// exitStatus is how the guest ended, as a shell tells it.
func exitStatus(state *os.ProcessState, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	ws := state.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return ws.ExitStatus(), nil
}

// environment is the program's: ours, with changes, and what the guest is told.
func environment(changes []string, c guest.Config) []string {
	env := make(map[string]string)
	var order []string
	for _, kv := range append(os.Environ(), append(changes, guest.Variable+"="+c.Encode())...) {
		key, _, _ := strings.Cut(kv, "=")
		if _, there := env[key]; !there {
			order = append(order, key)
		}
		env[key] = kv
	}
	list := make([]string, 0, len(order))
	for _, key := range order {
		list = append(list, env[key])
	}
	return list
}

// forwarded are the signals that are meant for the program. Those that stop a
// process are not among them: the terminal sends them to both.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1,
	syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH,
}

// forward passes signals on until done is closed.
//
// A program must get each signal once. Without a terminal it is in a process
// group of its own, so that what is sent to ours reaches it through us only. At
// a terminal, which lets only its foreground group read, it must be in ours, and
// then has from the terminal itself what the terminal sends.
func forward(p *os.Process, signals <-chan os.Signal, shared bool, done <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if shared && fromTerminal(s) && (s == syscall.SIGHUP || sharesTerminal()) {
				continue
			}
			p.Signal(s) // an error means that it has ended
		case <-done:
			return
		}
	}
}

func fromTerminal(s os.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGQUIT || s == syscall.SIGHUP || s == syscall.SIGWINCH
}
