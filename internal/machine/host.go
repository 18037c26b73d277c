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

// Host is how the probes ask the machine. Tests put their own answers in.
type Host struct {
	GOOS, GOARCH string
	FS           fs.FS // from the root: settings are read below proc
	// OpenDevice opens a device for reading and writing, and closes it.
	OpenDevice func(path string) error
	// Socket makes a socket and closes it.
	Socket func(domain, typ, proto int) error
	// UserNamespace starts a program in a user namespace of its own.
	UserNamespace func() error
	// LookPath is exec.LookPath.
	LookPath func(program string) (string, error)
	// GoEnv asks the go command for variables, one answer for each.
	GoEnv func(names ...string) ([]string, error)
	Tools
}

// Tools are probes that come from whoever builds and runs programs.
type Tools struct {
	// KnowsGo returns nil if Loam can build with this toolchain.
	KnowsGo func(goroot, version string) error
	// Emulator says what virtual machines there can be. To try KVM, it boots a guest.
	Emulator func() Emulator
}

// Emulator is a QEMU.
type Emulator struct {
	Version string // empty: there is none that can be used
	KVM     bool   // it runs guests by KVM
	Why     string // why there is none, or not by KVM
}

// ThisHost is the machine that the program runs on.
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

// Capabilities, by their bit (capabilities(7), linux/capability.h).
const (
	capNetBindService = 10
	capNetAdmin       = 12
)

// has reports whether this process holds a capability (proc_pid_status(5),
// CapEff). What cannot be read is not held.
func (h *Host) has(capability uint) bool {
	for line := range strings.Lines(h.setting("proc/self/status")) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			return err == nil && set>>capability&1 == 1
		}
	}
	return false
}

// setting is the text of a small file, "" if it cannot be read.
func (h *Host) setting(path string) string {
	text, err := fs.ReadFile(h.FS, path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// number is a setting that is one.
func (h *Host) number(path string) (int, bool) {
	n, err := strconv.Atoi(h.setting(path))
	return n, err == nil
}
