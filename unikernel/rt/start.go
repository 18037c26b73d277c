package rt

import (
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe" // and for go:linkname

	"loam/link"
	"loam/posix"
	"loam/unikernel/guest"
)

// Loam's descriptors, as the edited standard library knows them.
const (
	firstFD = 1 << 24
	spanFD  = 1 << 24
)

// process is the program. It is set before the door opens and never changed.
var process *posix.Process

// What posix.Table says by number: which calls Loam may serve, as the door knows
// them, and the errno of those that are refused.
var (
	takes    [512]uint8
	refusals [512]uintptr
)

// serve opens the door: calls says by number which ones Loam may serve.
//
//go:linkname serve syscall.loamServe
func serve(calls *[512]uint8)

// statusFailed is how a guest ends whose network cannot be made.
const statusFailed = 2

func init() {
	config, err := guest.Decode(os.Getenv(guest.Variable))
	if err == nil {
		os.Unsetenv(guest.Variable)
		if config.Machine {
			machineConfig = config
			return
		}
		err = start(config)
	}
	giveUp(err)
}

// machineConfig is kept for StartMachine.
var machineConfig guest.Config

// StartMachine starts Loam in a virtual machine, whose network cards open opens. It
// is called by the initialisation of package unikernel/rt/machine, so that a
// process has no drivers.
func StartMachine(open func(guest.Link) (link.Device, error)) {
	openCard = open
	giveUp(start(machineConfig))
}

// giveUp ends a guest that cannot start.
func giveUp(err error) {
	if err != nil {
		os.Stderr.WriteString("loam: " + err.Error() + "\n")
		os.Exit(statusFailed)
	}
}

func start(c guest.Config) error {
	network, err := newNetwork(c)
	if err != nil {
		return err
	}
	if err := syscall.Uname(&hostUname); err != nil {
		return err
	}
	process = posix.New(posix.Options{
		Network:  network,
		Host:     linux{},
		FirstFD:  firstFD,
		Hostname: c.Hostname,
		Release:  stringOf(hostUname.Release[:]),
		Credentials: posix.Credentials{
			PID: int32(syscall.Getpid()), UID: int32(syscall.Getuid()), GID: int32(syscall.Getgid()),
		},
	})
	contents = map[servedFile]string{
		resolvConf: resolvText(network.DNS()),
		hosts:      hostsText(c),
	}
	for _, call := range posix.Table {
		takes[call.Number] = uint8(call.Takes)
		refusals[call.Number] = uintptr(call.Errno)
	}
	serve(&takes)
	atExit(end)
	if c.Machine {
		return nil
	}
	return sealHost(c)
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
	process.Exit(exitTime)
}

// park is where they end up.
//
//go:noinline
func park() { select {} }

// resolvText is /etc/resolv.conf. Without a server names cannot be looked up;
// the file then has none, and package net asks the loopback, where nobody
// answers.
func resolvText(servers []netip.Addr) string {
	var b strings.Builder
	for _, a := range servers {
		b.WriteString("nameserver " + a.String() + "\n")
	}
	return b.String()
}

// hostsText is /etc/hosts.
func hostsText(c guest.Config) string {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n")
	for _, l := range c.Links {
		if c.Hostname != "" && l.Address.IsValid() {
			b.WriteString(l.Address.Addr().String() + " " + c.Hostname + "\n")
		}
	}
	return b.String()
}
