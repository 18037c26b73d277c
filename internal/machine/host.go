package machine

import (
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Host contains the functions by which the probes examine this machine. Tests replace its functions.
type Host struct {
	GOOS, GOARCH string
	FS           fs.FS // root of the file system; probes read settings below proc
	// OpenDevice opens a device for reading and writing, and closes it again.
	OpenDevice func(path string) error
	// Socket creates a socket and closes it again.
	Socket func(domain, typ, proto int) error
	// UserNamespace runs a program in a new user namespace.
	UserNamespace func() error
	// LookPath is exec.LookPath.
	LookPath func(program string) (string, error)
	// GoEnv returns the values of variables of "go env", one for each name.
	GoEnv func(names ...string) ([]string, error)
	Tools
}

// Tools are the probes supplied by the code that builds and runs programs.
type Tools struct {
	// KnowsGo returns nil if Loam can build with this toolchain.
	KnowsGo func(goroot, version string) error
	// Emulator returns which virtual machines are possible. It boots a guest to try KVM.
	Emulator func() Emulator
	// Layers returns what confines a program that runs as a process.
	Layers func() []Layer
}

// Layer is one layer of the confinement of a program that runs as a process, such as its system call filter.
type Layer struct {
	Name   string // such as "filter"
	Holds  bool
	Detail string
}

// Emulator describes the QEMU of this machine.
type Emulator struct {
	Version string // version of QEMU; empty: there is no usable QEMU
	KVM     bool   // QEMU can run guests with KVM
	Why     string // why there is no QEMU, or why it cannot use KVM
}

// ThisHost returns a Host for the machine that this program runs on.
func ThisHost(t Tools) *Host {
	return &Host{
		GOOS:          runtime.GOOS,
		GOARCH:        runtime.GOARCH,
		FS:            os.DirFS("/"),
		OpenDevice:    openDevice,
		Socket:        makeSocket,
		UserNamespace: enterUserNamespace,
		LookPath:      exec.LookPath,
		GoEnv:         goEnv,
		Tools:         t,
	}
}

func openDevice(path string) error {
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return syscall.Close(fd)
}

func makeSocket(domain, typ, proto int) error {
	fd, err := syscall.Socket(domain, typ|syscall.SOCK_CLOEXEC, proto)
	if err != nil {
		return err
	}
	return syscall.Close(fd)
}

func enterUserNamespace() error {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
	}
	return cmd.Run()
}

func goEnv(names ...string) ([]string, error) {
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"), nil
}

// Capabilities by bit number (capabilities(7), linux/capability.h).
const (
	capNetBindService = 10
	capNetAdmin       = 12
)

// has reports whether this process holds a capability (proc_pid_status(5), CapEff). It returns false if
// the status cannot be read.
func (h *Host) has(capability uint) bool {
	for line := range strings.Lines(h.setting("proc/self/status")) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			return err == nil && set>>capability&1 == 1
		}
	}
	return false
}

// setting returns the text of a small file, or "" if it cannot be read.
func (h *Host) setting(path string) string {
	text, err := fs.ReadFile(h.FS, path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// number returns the value of a setting that is a number.
func (h *Host) number(path string) (int, bool) {
	n, err := strconv.Atoi(h.setting(path))
	return n, err == nil
}
