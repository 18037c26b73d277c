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

// What this machine offers to virtual machines: whether there is a QEMU that is new
// enough, and whether KVM runs a guest. The device file of KVM proves nothing: there
// are machines that have it and cannot run an ordinary guest, and some of these run
// a small one. So a Go program is booted there once, and the answer is remembered
// for as long as neither the kernel, nor QEMU, nor the machine has begun anew.
//
// Rejected: a guest of a few instructions, which needs no build. It ran where no
// kernel did.

// Accelerator is how QEMU runs the instructions of a guest.
type Accelerator int

// Accelerators.
const (
	TCG Accelerator = iota // QEMU translates them
	KVM                    // the processor runs them
)

// String is QEMU's name for it.
func (a Accelerator) String() string {
	if a == KVM {
		return "kvm"
	}
	return "tcg"
}

// Emulator is what was found out about QEMU on this machine.
type Emulator struct {
	Version     string // "7.2.22"; empty: there is no QEMU, or none that Loam can use
	Accelerator Accelerator
	Why         string // why there is none, or no KVM; one sentence without its full stop
	// Firmware is the file of a firmware that starts q35 and pc sooner than QEMU's own
	// does; empty: QEMU has none with it.
	Firmware string
	// Sandbox says that QEMU can give up what it does not need of the host: see monitor.go.
	Sandbox bool
}

// The oldest QEMU that has -netdev stream.
const oldestMajor, oldestMinor = 7, 2

// probeTime bounds the boot of the guest that KVM is tried with. It takes a tenth of
// a second where it runs.
const probeTime = 10 * time.Second

// FindEmulator finds out what this machine offers, or remembers it. Only ctx can make
// it fail.
func FindEmulator(ctx context.Context) (Emulator, error) {
	path, err := exec.LookPath(qemu)
	if err != nil {
		return Emulator{Why: "there is no " + qemu}, nil
	}
	c, err := openCache()
	if err != nil {
		c = "" // what cannot be remembered is found out each time
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

// recordKey is what an answer depends on.
func recordKey(path string) []string {
	key := []string{path}
	for _, file := range []string{"/proc/sys/kernel/osrelease", "/proc/sys/kernel/random/boot_id"} {
		text, _ := os.ReadFile(file)
		key = append(key, string(text))
	}
	own, _ := os.Executable()
	for _, program := range []string{path, own} { // this is another kernel when it was built anew
		if st, err := os.Stat(program); err == nil {
			key = append(key, fmt.Sprint(st.Size(), st.ModTime().UnixNano()))
		}
	}
	if err := openKVM(); err != nil { // a user who may open it from now on
		key = append(key, err.Error())
	}
	return key
}

func readRecord(c cache, path string) (e Emulator, ok bool) {
	if c == "" {
		return e, false
	}
	data, err := os.ReadFile(path)
	return e, err == nil && json.Unmarshal(data, &e) == nil
}

// writeRecord remembers an answer. A cache that cannot be written costs time only.
func writeRecord(path string, e Emulator) {
	if data, err := json.Marshal(e); err == nil {
		writeFile(path, data)
	}
}

// probeEmulator finds out. lasting is whether the answer would be the same again.
func probeEmulator(ctx context.Context, path string) (e Emulator, lasting bool) {
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return Emulator{Why: fmt.Sprintf("%s --version fails: %v", path, err)}, false
	}
	version, ok := parseVersion(string(out))
	if !ok {
		return Emulator{Why: fmt.Sprintf("QEMU %s is older than %d.%d", version, oldestMajor, oldestMinor)}, true
	}
	e = Emulator{Version: version, Firmware: findFirmware(ctx, path), Sandbox: hasSandbox(ctx, path)}
	if err := openKVM(); err != nil {
		e.Why = "KVM cannot be used: " + err.Error()
		return e, true
	}
	program, err := buildProbe(ctx)
	if err != nil {
		e.Why = "KVM was not tried, since the guest to try it with does not build: " + err.Error()
		return e, false
	}
	tried := Emulator{Accelerator: KVM, Firmware: e.Firmware, Sandbox: e.Sandbox}
	if err := bootProbe(ctx, program, tried); err != nil {
		e.Why = "KVM does not run a guest: " + firstLine(err.Error())
		return e, true
	}
	e.Accelerator = KVM
	return e, true
}

// parseVersion finds the version in what QEMU says, and whether it is new enough.
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

// firstLine is what QEMU said first, which is why the rest went wrong.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// findFirmware finds qboot, which comes with QEMU for microvm: it leaves the devices of
// the PCI bus to who drives them, and looks for nothing to boot from. SeaBIOS takes a
// third of the time until a program begins under TCG.
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

// hasSandbox reports whether QEMU was built with its filter of system calls.
func hasSandbox(ctx context.Context, path string) bool {
	return exec.CommandContext(ctx, path, "-sandbox", sandbox, "-machine", "help").Run() == nil
}

func openKVM() error {
	fd, err := syscall.Open("/dev/kvm", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: "/dev/kvm", Err: err}
	}
	return syscall.Close(fd)
}

// probeProgram is the guest that KVM is tried with: memory, threads on two CPUs,
// timers, interrupts, and what it says.
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

const probeAnswer = "a guest runs"

// buildProbe builds that guest and returns its file.
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

// bootProbe boots it. The error says in a few words what went wrong.
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

// alarm rings once when a word has been written to it.
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
