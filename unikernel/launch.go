package unikernel

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"loam/unikernel/guest"
	"loam/unikernel/linked"
	"loam/unikernel/sandbox"
	"loam/unikernel/seal"
)

// On platform Process, the guest is a child of package sandbox's stage, which is a child of the loam command. It shares
// the command's standard streams and environment. When the command ends for any reason, kill -9 included, the guest is
// killed too. The command exits with the guest's status.

// launch starts program and waits for its end.
func launch(program string, o *Options, n *network) (status int, err error) {
	shared := sharesTerminal()
	command, err := n.command(program, o)
	if err != nil {
		return 0, err
	}
	command.Group = !shared

	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)

	runtime.LockOSThread() // sandbox.Start requires that its thread lives as long as the program
	defer runtime.UnlockOSThread()
	p, err := sandbox.Start(*command)
	switch {
	case errors.Is(err, sandbox.ErrKernel):
		return 0, errorf("use --platform vm", "%v", err)
	case err != nil:
		return 0, errorf("try again, or use --platform vm", "%s cannot be started: %v", program, err)
	}
	n.handedOver()
	o.started()
	done := make(chan struct{})
	go forward(p, signals, shared, done)
	ws, err := p.Wait()
	close(done)
	return statusOf(ws), err
}

// command describes the program's process. In n.config it sets the fields that the guest cannot determine itself, such
// as its executable.
func (n *network) command(program string, o *Options) (*sandbox.Command, error) {
	places, err := placesOf(program)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	c := &sandbox.Command{
		Program: program, Args: append([]string{program}, o.Args...), Files: n.files,
		Calls: seal.Calls, Places: places, Handed: -1, KeepRoot: o.KeepRoot,
	}
	if len(n.disks) > 0 {
		c.Disk = firstGuestFD + len(n.files)
		if c.DiskSizes, err = sizes(n.disks); err != nil {
			return nil, err
		}
		n.giveDisks()
		c.Files = n.files
	}
	for _, l := range n.config.Links {
		c.Nonblock = append(c.Nonblock, l.FDs...)
	}
	if n.config.Handed != 0 {
		c.Handed = n.config.Handed
		c.Nonblock = append(c.Nonblock, c.Handed)
	}
	for _, s := range n.config.Shared {
		c.Nonblock = append(c.Nonblock, s.Server)
		c.Memory, c.Memories = n.config.Shared[0].Memory, len(n.config.Shared)
	}
	n.config.Program, n.config.ProgramFD = path, c.ProgramFile()
	n.config.HandedFirst = n.config.ProgramFD + 1
	if source, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource"); err == nil {
		n.config.ClockSource = strings.TrimSpace(string(source))
	}
	changes := o.Env
	if limit := processors(changes); limit != "" {
		n.config.Limited = true
		changes = append(slices.Clip(changes), "GOMAXPROCS="+limit)
	}
	c.Env = environment(os.Environ(), changes, n.config)
	return c, nil
}

// processors returns the number of processors that the control group allows. It is empty if the control group does not
// reduce the number, or if the user has set GOMAXPROCS. This command's own runtime has computed the number.
func processors(changes []string) string {
	const variable = "GOMAXPROCS"
	set := slices.ContainsFunc(changes, func(kv string) bool { return strings.HasPrefix(kv, variable+"=") })
	if _, inherited := os.LookupEnv(variable); inherited || set || runtime.GOMAXPROCS(0) >= runtime.NumCPU() {
		return ""
	}
	return strconv.Itoa(runtime.GOMAXPROCS(0))
}

// placesOf returns the addresses in a program from which the filter of system calls (package seal) allows system calls.
func placesOf(program string) ([]seal.Place, error) {
	f, err := elf.Open(program)
	if err != nil {
		return nil, errorf("build it again", "%v", err)
	}
	defer f.Close()
	found, err := linked.Places(f, seal.Functions())
	if err != nil {
		return nil, errorf("build it with loam run or loam test", "%s: %v", program, err)
	}
	places := make([]seal.Place, len(found))
	for i, p := range found {
		places[i] = seal.Place(p)
	}
	return places, nil
}

// dieWithParent makes the kernel kill this process when its parent ends.
func dieWithParent() error {
	parent := os.Getppid()
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0); errno != 0 {
		return errno
	}
	if os.Getppid() != parent { // the parent may have ended before prctl took effect
		return errors.New("the parent has ended")
	}
	return nil
}

// exitStatus returns the status of a finished command as a shell reports it: see statusOf.
func exitStatus(state *os.ProcessState, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return statusOf(state.Sys().(syscall.WaitStatus)), nil
}

// statusOf returns a process's exit status, or 128 plus the number of the signal that ended it.
func statusOf(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// environment returns the program's environment: base, changes, and the guest's configuration.
func environment(base, changes []string, c guest.Config) []string {
	env := make(map[string]string)
	var order []string
	for _, kv := range slices.Concat(base, changes, []string{guest.Variable + "=" + c.Encode()}) {
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

// forwarded are the signals that are forwarded to the program. Signals that stop a process are not among
// them: the terminal sends them to both processes.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1,
	syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, KillSignal,
}

// KillSignal ends the program of the process that receives it, as SIGKILL would: Run returns 128 + 9. So this process can
// end in order and restore the terminal, which it cannot if it receives SIGKILL itself. Before the program has started, the
// signal ends this process. It is the last real-time signal, which Linux itself never sends.
const KillSignal = syscall.Signal(64)

// forward forwards signals to the program until the channel done is closed.
//
// The program must receive each signal once. Without a terminal it runs in a process group of its own, so a signal to this
// process group reaches it only through forward. With a terminal it must be in this process group, because only the
// foreground group may read the terminal. The terminal then sends its signals to both, and forward drops them.
func forward(p *sandbox.Process, signals <-chan os.Signal, shared bool, done <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if shared && fromTerminal(s) && (s == syscall.SIGHUP || sharesTerminal()) {
				continue
			}
			if s == KillSignal {
				s = syscall.SIGKILL
			}
			p.Signal(s.(syscall.Signal)) // Signal fails only if the process has ended
			if shared && s == syscall.SIGTERM {
				p.Signal(syscall.SIGCONT) // a job that the user has stopped with its terminal would not handle the signal
			}
		case <-done:
			return
		}
	}
}

// fromTerminal reports whether the terminal itself sends a signal to its foreground group.
func fromTerminal(s os.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGQUIT || s == syscall.SIGHUP || s == syscall.SIGWINCH
}
