package rt

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe" // and for go:linkname

	"loam/posix"
	"loam/stack"
	"loam/unikernel/complaint"
	"loam/unikernel/guest"
)

// process is the program. It is set before the door opens and never changed.
var process *posix.Process

// What posix.Table says by number: which calls Loam may serve, as the door knows
// them, and the errno of those that are refused.
var (
	takes    [512]uint8
	refusals [512]uintptr
)

// serve opens the door: calls says by number which ones Loam serves.
//
//go:linkname serve syscall.loamServe
func serve(calls *[512]uint8)

// serving has the runtime's poller know that descriptors are Loam's.
//
//go:linkname serving runtime.loamServing
var serving bool

// statusFailed is how a guest ends whose network cannot be made.
const statusFailed = 2

func init() {
	config, err := guest.Decode(os.Getenv(guest.Variable))
	if err == nil {
		os.Unsetenv(guest.Variable)
	}
	giveUp(err)
	given = config
}

// given is what the loam command says, kept for StartMachine and StartProcess.
var given guest.Config

// StartMachine starts Loam in a virtual machine. It is called by the initialisation
// of package unikernel/rt/machine, so that a process has no drivers.
func StartMachine(p Platform) {
	giveUp(start(p, given))
	kernelIsOurs = true
	startTraps()
}

// StartProcess starts Loam in a process of Linux, and has seal shut what is not Loam's.
// It is called by the initialisation of package unikernel/rt/process.
func StartProcess(seal func() error) {
	err := start(linux{}, given)
	if err == nil {
		openMaps()
		startTraps()
		err = seal()
	}
	giveUp(err)
}

// giveUp ends a guest that cannot start.
func giveUp(err error) {
	if err != nil {
		os.Stderr.WriteString("loam: " + err.Error() + "\n")
		os.Exit(statusFailed)
	}
}

// start makes the process, opens the door, and connects the network: its links
// are files too.
func start(p Platform, c guest.Config) error {
	if err := syscall.Uname(&hostUname); err != nil {
		return err
	}
	tree, err := newTree(p, c)
	if err != nil {
		return fmt.Errorf("the program's files: %w", err)
	}
	resolv := new(resolvConf)
	network := stack.New(stack.Config{
		Resumed: resumed, DNSChanged: resolv.update, Log: slog.New(complaint.Handler{To: os.Stderr}),
	})
	process = posix.New(posix.Options{
		Network:  network,
		Files:    tree,
		Streams:  [3]posix.Stream{p.Stream(0, c), p.Stream(1, c), p.Stream(2, c)},
		Hostname: c.Hostname,
		Release:  stringOf(hostUname.Release[:]),
		Clock:    readClock,
		Credentials: posix.Credentials{
			PID: int32(syscall.Getpid()), UID: int32(syscall.Getuid()), GID: int32(syscall.Getgid()),
		},
	})
	if c.Folder != "" { // where what is mounted has no such folder, the program begins in the root
		if errno := process.Chdir(c.Folder); errno != 0 && errno != syscall.ENOENT {
			return fmt.Errorf("%s: %w", c.Folder, errno)
		}
	}
	openDoor()
	if err := attachLinks(network, p, c); err != nil {
		return err
	}
	if err := openHanded(c); err != nil {
		return err
	}
	atExit(end)
	if len(c.Results) > 0 {
		to := p.Results(c)
		atExit(func() { sendResults(to, c.Results) })
	}
	if err := resolv.begin(tree, network); err != nil {
		return err
	}
	return writeEtc(tree, map[string]string{"hosts": hostsText(c), "hostname": hostname(c) + "\n"})
}

// openDoor has Loam serve the calls of posix.Table, and all that are in no list.
func openDoor() {
	for i := range takes {
		takes[i] = uint8(posix.TakesSome)
		refusals[i] = uintptr(syscall.ENOSYS)
	}
	for _, number := range posix.HostCalls {
		takes[number] = uint8(posix.TakesNone)
	}
	for _, call := range posix.Table {
		takes[call.Number] = uint8(call.Takes)
		if call.Support == posix.Refused {
			refusals[call.Number] = uintptr(call.Errno)
		}
	}
	serve(&takes)
	serving = true
	served.Store(process)
	openStreams()
}

// hostStreams keeps what package os made before the door opened: were it collected,
// its descriptors would be closed, which are Loam's by now.
var hostStreams [3]*os.File

// openStreams gives package os the standard streams anew, as they are here.
func openStreams() {
	hostStreams = [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
	os.Stdin = os.NewFile(0, "/dev/stdin")
	os.Stdout = os.NewFile(1, "/dev/stdout")
	os.Stderr = os.NewFile(2, "/dev/stderr")
}

// atExit has f called when the program ends by itself; the last one first. A
// goroutine that ends the program from inside a bubble of testing/synctest
// leaves it for that, as for a system call.
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

// exitTime is how long a program that has ended may go on sending.
const exitTime = 3 * time.Second

// ending is set while the program ends. Its goroutines that are still there must
// not see their descriptors go: calls about these never return then.
var ending atomic.Bool

func end() {
	ending.Store(true)
	served.Store(nil)
	process.Exit(exitTime)
}

// park is where they end up.
//
//go:noinline
func park() { select {} }

// hostsText is /etc/hosts.
func hostsText(c guest.Config) string {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n")
	for _, l := range c.Links {
		for _, a := range [...]netip.Prefix{l.Address, l.Address6} {
			if c.Hostname != "" && a.IsValid() {
				b.WriteString(a.Addr().String() + " " + c.Hostname + "\n")
			}
		}
	}
	return b.String()
}
