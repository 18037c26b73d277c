package unikernel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"loam/boot"
	"loam/unikernel/guest"
	"loam/unikernel/image"
)

// Finding out what this machine offers: whether QEMU is new enough, and whether KVM runs a guest. The existence of /dev/kvm
// is not sufficient. Some machines have it and cannot run an ordinary guest, and some of these run a small one. So a Go
// program is booted with KVM once. The result is cached until the kernel, QEMU or loam changes, or the machine reboots.
//
// Rejected: a guest of a few instructions, which needs no build. It ran on machines where no kernel did.

// Accelerator is the way in which QEMU runs a guest's instructions.
type Accelerator int

// Values of Accelerator.
const (
	TCG Accelerator = iota // QEMU translates instructions
	KVM                    // the processor runs instructions (hardware virtualisation)
)

// String returns QEMU's name for the accelerator.
func (a Accelerator) String() string {
	if a == KVM {
		return "kvm"
	}
	return "tcg"
}

// Emulator describes QEMU on this machine.
type Emulator struct {
	Version     string // such as "7.2.22"; empty: no usable QEMU
	Accelerator Accelerator
	Why         string // the reason why QEMU or KVM cannot be used; one sentence without its full stop
	// Firmware is the path of firmware that starts q35 and pc faster than QEMU's default; empty: none is installed.
	Firmware string
	// Sandbox is set if QEMU supports -sandbox: see qemuSandbox.
	Sandbox bool
	// RootOnly is set if QEMU cannot run as another user. It then stays root when the loam command runs as root.
	RootOnly bool
}

// The oldest supported version of QEMU, the first with -netdev stream.
const oldestMajor, oldestMinor = 7, 2

// probeTime bounds the boot of the test guest. A successful boot takes about a tenth of a second.
const probeTime = 10 * time.Second

// FindEmulator returns what this machine offers, from the cache if possible. It fails only if ctx ends.
func FindEmulator(ctx context.Context) (Emulator, error) {
	path, err := exec.LookPath(qemu)
	if err != nil {
		return Emulator{Why: "there is no " + qemu}, nil
	}
	c, err := openCache()
	if err != nil {
		c = "" // without a cache folder, the probe runs each time
	}
	record := c.path("emulator", digest(recordKey(path)...))
	if e, ok := readRecord(c, record); ok {
		return e, nil
	}
	e, lasting := probeEmulator(ctx, path)
	if err := context.Cause(ctx); err != nil {
		return Emulator{}, err
	}
	if lasting && c != "" {
		writeRecord(record, e)
	}
	return e, nil
}

// recordKey returns the facts that a cached result depends on.
func recordKey(path string) []string {
	key := []string{path}
	for _, file := range []string{"/proc/sys/kernel/osrelease", "/proc/sys/kernel/random/boot_id"} {
		text, _ := os.ReadFile(file)
		key = append(key, string(text))
	}
	own, _ := os.Executable()
	for _, program := range []string{path, own} { // this executable is included because it contains the kernel
		if st, err := os.Stat(program); err == nil {
			key = append(key, fmt.Sprint(st.Size(), st.ModTime().UnixNano()))
		}
	}
	if err := openKVM(); err != nil { // this error is not cached, because the user may get the permission later
		key = append(key, err.Error())
	}
	return key
}

// readRecord returns the cached result, if there is one.
func readRecord(c cache, path string) (e Emulator, ok bool) {
	if c == "" {
		return e, false
	}
	data, err := os.ReadFile(path)
	return e, err == nil && json.Unmarshal(data, &e) == nil
}

// writeRecord caches a result. A failure is ignored: it only costs time.
func writeRecord(path string, e Emulator) {
	if data, err := json.Marshal(e); err == nil {
		writeFile(path, data)
	}
}

// probeEmulator examines QEMU and KVM. lasting reports whether the result may be cached.
func probeEmulator(ctx context.Context, path string) (e Emulator, lasting bool) {
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return Emulator{Why: fmt.Sprintf("%s --version fails: %v", path, err)}, false
	}
	version, ok := parseVersion(string(out))
	if !ok {
		return Emulator{Why: fmt.Sprintf("QEMU %s is older than %d.%d", version, oldestMajor, oldestMinor)}, true
	}
	e = Emulator{Version: version, Firmware: findFirmware(ctx, path), Sandbox: hasSandbox(ctx, path), RootOnly: !runsAsNobody(ctx, path)}
	if err := openKVM(); err != nil {
		e.Why = "KVM cannot be used: " + err.Error()
		return e, true
	}
	program, err := buildProbe(ctx)
	if err != nil {
		e.Why = "KVM was not tried, since the guest to try it with does not build: " + err.Error()
		return e, false
	}
	tried := Emulator{Accelerator: KVM, Firmware: e.Firmware, Sandbox: e.Sandbox, RootOnly: e.RootOnly}
	if err := bootProbe(ctx, program, tried); err != nil {
		e.Why = "KVM does not run a guest: " + firstLine(err.Error())
		return e, true
	}
	e.Accelerator = KVM
	return e, true
}

// parseVersion returns the version in QEMU's output, and whether it is new enough.
func parseVersion(out string) (version string, ok bool) {
	_, rest, _ := strings.Cut(out, "version ")
	version, _, _ = strings.Cut(rest, " ")
	version, _, _ = strings.Cut(version, "\n")
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return strconv.Quote(version), false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	new := major > oldestMajor || major == oldestMajor && minor >= oldestMinor
	return version, err1 == nil && err2 == nil && new
}

// firstLine returns the first line of s: in QEMU's output, the first message is the cause of the other messages.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// findFirmware returns the path of qboot, which QEMU installs for microvm. qboot leaves the PCI devices to
// the operating system and searches for nothing to boot. SeaBIOS takes a third of the start time under TCG.
func findFirmware(ctx context.Context, path string) string {
	folders, err := exec.CommandContext(ctx, path, "-L", "help").Output()
	if err != nil {
		return ""
	}
	for folder := range strings.Lines(string(folders)) {
		file := filepath.Join(strings.TrimSpace(folder), "qboot.rom")
		if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() && filepath.IsAbs(file) {
			return file
		}
	}
	return ""
}

// hasSandbox reports whether QEMU was built with its system call filter.
func hasSandbox(ctx context.Context, path string) bool {
	return exec.CommandContext(ctx, path, "-sandbox", qemuSandbox, "-machine", "help").Run() == nil
}

// openKVM reports whether this process may open /dev/kvm.
func openKVM() error {
	fd, err := syscall.Open("/dev/kvm", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: "/dev/kvm", Err: err}
	}
	return syscall.Close(fd)
}

// probeProgram is the guest that tests KVM. It uses memory, threads on two CPUs, timers, interrupts and output.
const probeProgram = `package main

import (
	"fmt"
	"runtime"
	"time"
)

func main() {
	sums := make(chan int)
	for i := range 4 {
		go func() {
			sum := 0
			for end := time.Now().Add(5 * time.Millisecond); time.Now().Before(end); {
				sum += len(make([]byte, 1<<16)) + i
			}
			sums <- sum
		}()
	}
	for range 4 {
		<-sums
	}
	runtime.GC()
	time.Sleep(5 * time.Millisecond)
	fmt.Println("` + probeAnswer + `")
}
`

// probeAnswer is the line that the test guest prints.
const probeAnswer = "a guest runs"

// buildProbe builds the test guest and returns its path.
func buildProbe(ctx context.Context) (string, error) {
	c, err := openCache()
	if err != nil {
		return "", err
	}
	source := c.path("emulator", "probe.go")
	if err := writeFile(source, []byte(probeProgram)); err != nil {
		return "", err
	}
	p, err := NewPlan(ctx, Target{Args: []string{source}, Platform: Machine})
	if err != nil {
		return "", err
	}
	return p.Program, p.Build(ctx)
}

// bootProbe boots the test guest. The error is a short phrase.
func bootProbe(ctx context.Context, program string, by Emulator) error {
	data, err := os.ReadFile(program)
	if err == nil {
		err = image.Prepare(data)
	}
	if err != nil {
		return err
	}
	variable := guest.Variable + "=" + guest.Config{Machine: true}.Encode()
	words, err := boot.Config{Args: []string{"probe"}, Env: []string{variable}}.Encode()
	if err != nil {
		return err
	}
	m := newMonitor(&MachineConfig{Memory: DefaultMemory, CPUs: 2, Model: "q35", Emulator: by}, nil)
	defer m.close()
	if err := m.load(data, words); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	broken := &alarm{word: "KVM internal error", ring: cancel}
	m.complaint = io.MultiWriter(&m.said, broken)
	var answer bytes.Buffer
	status, err := m.run(ctx, streams{out: &answer, errors: &answer})
	switch {
	case broken.rung:
		return errors.New(broken.word)
	case ctx.Err() != nil:
		return fmt.Errorf("the guest did not end within %v", probeTime)
	case err != nil:
		return err
	case status != 0 || answer.String() != probeAnswer+"\n":
		return fmt.Errorf("the guest ended with status %d and said %q", status, &answer)
	}
	return nil
}

// alarm is a writer that calls the function ring once, as soon as its input contains a word.
type alarm struct {
	word string
	ring func()
	text []byte
	rung bool
}

// Write implements io.Writer.
func (a *alarm) Write(b []byte) (int, error) {
	a.text = append(a.text, b...)
	if !a.rung && bytes.Contains(a.text, []byte(a.word)) {
		a.rung = true
		a.ring()
	}
	return len(b), nil
}
