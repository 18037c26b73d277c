package rt

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe" // go:linkname requires this import too

	"loam/abi/linux"
	"loam/posix"
	syscalls "loam/posix/call"
	"loam/stack"
	"loam/unikernel/complaint"
	"loam/unikernel/guest"
)

// process is the program's process. It is set before Loam serves its first call and never changes.
var process *posix.Process

// Process returns the program's process.
func Process() *posix.Process { return process }

// Owners of a system call, as the hook in package syscall (unikernel/overlay) distinguishes them.
const (
	ofHost     = iota // the call is passed to the host
	ofFirstArg        // Loam serves the call, unless its first argument is a descriptor of the host
	ofLoam            // Loam serves the call
)

// takes holds the owner of each system call, by the number of the call: one of the constants above.
var takes [syscalls.Numbers]uint8

// install makes package syscall send system calls to Loam. calls holds each call's owner, by number.
//
//go:linkname install syscall.loamServe
func install(calls *[syscalls.Numbers]uint8)

// serving makes the runtime's poller treat file descriptors as Loam's.
//
//go:linkname serving runtime.loamServing
var serving bool

// statusFailed is the exit status of a guest that cannot start.
const statusFailed = 2

// The init function decodes the configuration and removes its variables from the program's environment. A
// program without the variable gets the zero configuration.
func init() {
	config, err := guest.Decode(os.Getenv(guest.Variable))
	if err == nil {
		os.Unsetenv(guest.Variable)
		if config.Limited {
			os.Unsetenv("GOMAXPROCS")
		}
	}
	giveUp(err)
	given = config
}

// given is the configuration from the loam command. It is kept for StartMachine and StartProcess.
var given guest.Config

// WantsTerminal reports whether the first Linux program gets a terminal of its own.
func WantsTerminal() bool { return given.Terminal }

// User returns the user of a Linux program, as USER[:GROUP]; empty means root.
func User() string { return given.User }

// StartMachine starts Loam in a virtual machine. The init function of package unikernel/rt/machine calls
// it, so that only a machine links the drivers.
func StartMachine(p Platform) {
	kernelIsOurs = true
	giveUp(start(p, given))
	startTraps()
}

// errAlone is returned when a program built for Loam is started directly instead of by the loam command.
var errAlone = errors.New("this program is built to run on Loam, which confines it before it starts: use loam run")

// StartProcess starts Loam in a Linux process, which package sandbox has already confined. The init
// function of package unikernel/rt/process calls it.
func StartProcess() {
	if given.Program == "" {
		giveUp(errAlone)
	}
	err := start(hostLinux{}, given)
	if err == nil {
		openMaps()
		startTraps()
		takeHanded(given.HandedFirst)
	}
	giveUp(err)
}

// giveUp prints a non-nil error and ends the program, because the guest cannot start. It does nothing if err
// is nil.
func giveUp(err error) {
	if err != nil {
		os.Stderr.WriteString("loam: " + err.Error() + "\n")
		os.Exit(statusFailed)
	}
}

// start creates the process, makes the standard library call Loam, and then attaches the network links. The
// order matters: links are files with descriptors from HostFD on, which only the hook in package syscall
// translates.
func start(p Platform, c guest.Config) error {
	if err := askNames(); err != nil {
		return err
	}
	tree, terminals, err := newTree(p, c)
	if err != nil {
		return fmt.Errorf("the program's files: %w", err)
	}
	resolv := new(resolvConf)
	network := stack.New(stack.Config{
		Resumed: resumed, DNSChanged: resolv.update, Log: slog.New(complaint.Handler{To: os.Stderr}),
	})
	process = posix.New(posix.Options{
		Network:   network,
		Files:     tree,
		Terminals: terminals,
		Streams:   [3]posix.Stream{p.Stream(0, c), p.Stream(1, c), p.Stream(2, c)},
		Hostname:  c.Hostname,
		Kernel:    hostKernel{},
		Clock:     readClock,
		Sender:    sendTimer,
		NewMemory: newMemory,
		Credentials: posix.Credentials{
			PID: int32(syscall.Getpid()), UID: int32(syscall.Getuid()), GID: int32(syscall.Getgid()),
		},
	})
	openDoor()
	if err := mountShared(tree, p, c); err != nil {
		return err
	}
	if c.Folder != "" { // a root on a disk may not contain this folder; the program then starts in /
		if errno := process.Chdir(c.Folder); errno != 0 && (errno != linux.ENOENT || c.SharesRoot()) {
			return fmt.Errorf("%s: %w", c.Folder, errno)
		}
	}
	if err := attachLinks(network, p, c); err != nil {
		return err
	}
	if err := openHanded(c); err != nil {
		return err
	}
	atExit(end)
	if len(disks) > 0 {
		unmountAtEnd()
	}
	if len(c.Results) > 0 {
		to := p.Results(c)
		atExit(func() { sendResults(to, c.Results) })
	}
	if err := resolv.begin(tree, network); err != nil {
		return err
	}
	return writeEtc(tree, map[string]string{"hosts": hostsText(c), "hostname": hostname(c) + "\n"})
}

// openDoor installs the table of calls: from then on, Loam serves the program's system calls. Calls that are
// not in the table fail with ENOSYS.
func openDoor() {
	for i := range entries {
		takes[i], entries[i].errno = ofLoam, linux.ENOSYS
	}
	for _, r := range syscalls.Table {
		switch e := &entries[r.Number]; {
		case r.Who&syscalls.Host != 0 && !kernelIsOurs:
			takes[r.Number] = ofHost
		case r.Who&syscalls.Personality != 0:
			*e = entry{serve: r.Serve, addresses: r.Args.Addresses(), ofFile: r.Args.DescriptorFirst(), errno: r.Errno}
			if e.ofFile {
				takes[r.Number] = ofFirstArg
			}
		case r.Who&syscalls.Host != 0:
			takes[r.Number] = ofHost
		}
	}
	install(&takes)
	serving = true
	served.Store(process)
	openStreams()
}

// Serve replaces the function of a system call that is in the table by the result of the
// function serve. The argument of serve is the table's function, or a function that
// returns the errno of the table. Package children calls Serve before the program starts.
func Serve(number int, serve func(before syscalls.Serve) syscalls.Serve) {
	r := syscalls.ByNumber(number)
	e := &entries[number]
	before := e.serve
	if before == nil {
		errno := e.errno
		before = func(syscalls.Caller, syscalls.Args) (uint64, linux.Errno) { return 0, errno }
	}
	if r.Who&syscalls.Personality == 0 {
		set := r.Args.Addresses()
		before = func(_ syscalls.Caller, a syscalls.Args) (uint64, linux.Errno) { return coreCall(number, set, &a) }
	}
	*e = entry{serve: serve(before), addresses: r.Args.Addresses(), ofFile: r.Args.DescriptorFirst()}
	if takes[number] = ofLoam; entries[number].ofFile {
		takes[number] = ofFirstArg
	}
	install(&takes)
}

// hostStreams keeps the files that package os opened before Loam took over. If they were collected, their
// cleanups would close descriptors 0 to 2, which then refer to files of Loam.
var hostStreams [3]*os.File

// openStreams replaces the standard streams of package os by files of Loam.
func openStreams() {
	hostStreams = [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
	os.Stdin = os.NewFile(0, "/dev/stdin")
	os.Stdout = os.NewFile(1, "/dev/stdout")
	os.Stderr = os.NewFile(2, "/dev/stderr")
}

// atExit registers f to run when the program exits by itself; functions run in reverse order. A goroutine
// may end the program from inside a testing/synctest bubble, so f runs outside the bubble, as a system call
// does.
func atExit(f func()) {
	addExitHook(func() {
		bubble := leaveBubble()
		f()
		enterBubble(bubble)
	})
}

//go:linkname addExitHook runtime.loamAtExit
func addExitHook(f func())

//go:linkname leaveBubble runtime.loamLeaveBubble
func leaveBubble() unsafe.Pointer

//go:linkname enterBubble syscall.loamEnterBubble
func enterBubble(bubble unsafe.Pointer)

// exitTime is the longest time that Loam keeps sending queued data after the program has ended.
const exitTime = 3 * time.Second

// ending is set while the program exits. Goroutines that still run must not see their file descriptors
// disappear, so their calls on descriptors never return from then on.
var ending atomic.Bool

// end sends the program's remaining data and closes its files. It is the first function passed to atExit,
// so it runs last.
func end() {
	ending.Store(true)
	served.Store(nil)
	process.Exit(exitTime)
	unmount()
}

// park blocks the calling goroutine forever. It is not inlined so that it stands out in stack dumps.
//
//go:noinline
func park() { select {} }

// hostsText returns the content of /etc/hosts.
func hostsText(c guest.Config) string {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
	for _, l := range c.Links {
		for _, a := range [...]netip.Prefix{l.Address, l.Address6} {
			if c.Hostname != "" && a.IsValid() {
				b.WriteString(a.Addr().String() + " " + c.Hostname + "\n")
			}
		}
	}
	return b.String()
}
