package image

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loam/boot"
	"loam/internal/race"
	"loam/unikernel/overlay"
)

// built returns the program of testdata/guest as the linker writes it.
func built(t testing.TB) []byte {
	t.Helper()
	return buildOf(t, guest)
}

// buildOf returns a copy of a program of testdata as the linker writes it.
func buildOf(t testing.TB, build func() ([]byte, error)) []byte {
	t.Helper()
	data, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(nil), data...)
}

// The programs of testdata. Each is built when it is first needed, and only once.
var (
	guest = sync.OnceValues(func() ([]byte, error) { return build("./testdata/guest") })
	ring3 = sync.OnceValues(func() ([]byte, error) { return build("./testdata/ring3") })
)

// build builds a package together with the kernel.
func build(pkg string) ([]byte, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	files, err := overlay.Generate(strings.TrimSpace(string(goroot)), runtime.Version(), overlay.Ring0)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	source, err := filepath.Abs(pkg)
	if err != nil {
		return nil, err
	}
	replace := map[string]string{}
	add := func(name string, src []byte) error {
		path := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		replace[name] = path
		return os.WriteFile(path, src, 0o644)
	}
	err = add(filepath.Join(source, "kernel.go"), []byte("package main\n\nimport _ \"loam/kernel\"\n"))
	for name, src := range files {
		err = errors.Join(err, add(filepath.Join(strings.TrimSpace(string(goroot)), "src", name), src))
	}
	list, jerr := json.Marshal(map[string]any{"Replace": replace})
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := errors.Join(err, jerr, os.WriteFile(overlayFile, list, 0o644)); err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "guest")
	cmd := exec.Command("go", "build", "-overlay", overlayFile, "-ldflags", LinkFlags(), "-o", program, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(err, errors.New(string(out)))
	}
	return os.ReadFile(program)
}

// bootable returns the path of the program of testdata/guest after Prepare.
func bootable(t testing.TB) string {
	t.Helper()
	return bootableOf(t, guest)
}

func bootableOf(t testing.TB, build func() ([]byte, error)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest.elf")
	if err := os.WriteFile(path, prepared(t, buildOf(t, build)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// bootTime bounds a boot, which takes a fraction of a second on a host at rest. Some cases with two CPUs take a minute on a busy host.
const bootTime = 4 * time.Minute

// findQEMU returns the path of QEMU, or skips the test.
func findQEMU(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("there is no QEMU: apt-get install qemu-system-x86")
	}
	return path
}

// machine boots an image with a configuration, and returns its output and exit status.
func machine(t testing.TB, image string, c boot.Config, options ...string) (output string, status int) {
	t.Helper()
	qemu := findQEMU(t)
	words, err := c.Encode()
	config := filepath.Join(t.TempDir(), "config")
	if err := errors.Join(err, os.WriteFile(config, words, 0o644)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), bootTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, qemu, append([]string{"-accel", "tcg", "-cpu", "max", "-display", "none",
		"-nodefaults", "-serial", "stdio", "-no-reboot", "-device", "isa-debug-exit",
		"-kernel", image, "-initrd", config}, options...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when this thread ends
	out, err := cmd.CombinedOutput()
	runtime.UnlockOSThread()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out), cmd.ProcessState.ExitCode() >> 1 // QEMU shifts the status left and sets bit 0
}

// A program boots on each machine model, with little memory and with much.
func TestBoot(t *testing.T) {
	image := bootable(t)
	for _, options := range [][]string{
		{"-machine", "q35", "-m", "32M"},
		{"-machine", "pc", "-m", "256M"},
		{"-machine", "q35,hpet=off", "-m", "64M"}, // without HPET, the clock is the ACPI timer
		{"-machine", "microvm", "-m", "128M", "-smp", "2"},
		{"-machine", "q35", "-m", "8G", "-smp", "4"},
	} {
		if out, status := machine(t, image, boot.Config{}, options...); status != 0 || out != "hello\n" {
			t.Errorf("%v: status %d, %q", options, status, out)
		}
	}
}

// Without ACPI, the kernel finds processors and the serial port's interrupt in the MP tables of PC
// firmware. SeaBIOS lists one processor per socket there.
func TestMPTable(t *testing.T) {
	image := bootable(t)
	c := boot.Config{Args: []string{"guest", "spread"}}
	if out, status := machine(t, image, c, "-machine", "pc,acpi=off", "-m", "64M", "-smp", "4,sockets=4"); status != 0 || out != "spread over 4\n" {
		t.Errorf("status %d, %s", status, out)
	}
}

// Drivers can use devices, their memory, and an interrupt line that two devices share.
func TestDevices(t *testing.T) {
	image := bootable(t)
	for name, want := range map[string]string{
		"sharedline":   "shared by 2 each rang [20 20]\n",
		"devicememory": "moved\n",
	} {
		c := boot.Config{Args: []string{"guest", name}}
		out, status := machine(t, image, c, "-machine", "pc", "-m", "64M", "-smp", "2", "-device", "edu,addr=4", "-device", "edu,addr=8")
		if status != 0 || out != want {
			t.Errorf("%s: status %d, %s", name, status, out)
		}
	}
}

// The kernel enables each protection feature that the processor has, and neither global pages nor process-context identifiers.
func TestProtection(t *testing.T) {
	image := bootable(t)
	c := boot.Config{Args: []string{"guest", "protection"}}
	for model, want := range map[string]string{
		"max":                "write-protect true no-execute true SMEP true SMAP true UMIP true global false PCID false\n",
		"qemu64":             "write-protect true no-execute true SMEP false SMAP false UMIP false global false PCID false\n",
		"qemu64,+smep,+smap": "write-protect true no-execute true SMEP true SMAP true UMIP false global false PCID false\n",
	} {
		if out, status := machine(t, image, c, "-machine", "q35", "-m", "64M", "-smp", "2", "-cpu", model); status != 0 || out != want {
			t.Errorf("%s: status %d, %s", model, status, out)
		}
	}
}

// The kernel provides the services of Linux that the Go runtime needs: each row is a case of testdata/guest. Expected
// outputs are regular expressions.
func TestGuest(t *testing.T) {
	const trace = `\n\ngoroutine 1 \[(?s:.*)main\.main\(\)\n`
	image := bootable(t)
	for _, c := range []struct {
		args   string
		status int
		output string
	}{
		{"words a  ä", 0, `\["a" "" "ä"\] "a b"\n`},
		{"exit", 7, ``},
		{"panic", 2, `panic: on purpose` + trace + `(?s:.*)`},
		{"nil", 0, `(runtime error: invalid memory address or nil pointer dereference true true\n){2}`},
		{"divide", 0, `runtime error: integer divide by zero true true\n`},
		{"wild", 0, `(runtime error: invalid memory address or nil pointer dereference true true\n){3}`},
		{"fault", 2, `unexpected fault address 0x123456789abc\nfatal error: fault\n\[signal SIGSEGV: segmentation violation code=0x1 addr=0x123456789abc pc=0x[0-9a-f]+\]\n(?s:.*)\nmain\.peek\((?s:.*)\nmain\.main\(\)\n(?s:.*)`},
		{"illegal", 2, `SIGILL: illegal instruction\nPC=(?s:.*)\nmain\.illegal\(\)\n(?s:.*)`},
		{"trap", 2, `SIGTRAP: trace trap\nPC=(?s:.*)\nruntime\.Breakpoint\(\)\n(?s:.*)`},
		{"broken", 125, `\nloam: the kernel failed\nvector 0x0{15}e\n(?s:.*)\nr14 0xf{8}(?s:.*)\nloam/arch/amd64\.store32 .*\nloam/arch/amd64\.APIC\.write .*\n(?s:.*)loam/kernel\.(Enter .*enter|Interrupted .*lock)\.go:\d+\n(?s:.*)\nnot served: system call 499, 1 times\n(?s:.*)`},
		{"narrow", 125, `\nloam: the kernel's stack is too small for what it does\nvector 0x0{15}e\n(?s:.*)\ncr2 0xffffe000000(?s:.*)\nloam/kernel\.\S+ .*\.go:\d+\n(?s:.*)`},
		{"blind", 125, `\nloam: the kernel failed\nvector 0x0{15}e\n(?s:.*)and failed again while it told of that, at ip 0x[0-9a-f]{16}\n`},
		{"readonly", 0, `(runtime error: invalid memory address or nil pointer dereference true true\n){5}`},
		{"collect", 0, `collected true\n`},
		{"loop", 0, `collected beside a loop\n`},
		{"pingpong", 0, `sum 10000\n`},
		{"sleep", 0, `slept true true true true\n`},
		{"threads", 0, `threads 200\n`},
		{"release", 0, `released\n`},
		{"toomuch", 2, `loam: the program asks for \d{3,6} MiB of memory at once, and of \d\d MiB there are \d\d free; give .*\nfatal error: runtime: out of memory\n(?s:.*)`},
		{"exhaust", 123, `loam: out of memory: the program uses all of the 5\d MiB .*\n`},
		{"bigpages", 0, `big pages 7 all given back true\n`},
		{"zeros", 0, `zeros\n`},
		{"clock", 0, `true true \d{10}\n`},
		{"floats", 0, `computed on CPUS\n`},
		{"children", 0, `children 20\n`},
		{"crash", 125, `\nloam: the program failed where nothing could be told\nvector 0x0{15}e\n(?s:.*)\nmain\.crash .*\.go:\d+\n(?s:.*)`},
		{"device", 0, `interrupted\n`},
		{"pipe", 0, `true bad file descriptor \[resource temporarily unavailable bad file descriptor resource temporarily unavailable broken pipe\] 4\n`},
		{"deadlock", 2, `fatal error: all goroutines are asleep - deadlock!` + trace + `(?s:.*)`},
	} {
		config := boot.Config{Args: append([]string{"guest"}, strings.Split(c.args, " ")...), Env: []string{"A=", "WORD=a b"}}
		for _, cpus := range []string{"1", "2"} {
			if race.Enabled && cpus == "1" {
				continue
			}
			want := regexp.MustCompile(`^` + strings.Replace(c.output, "CPUS", cpus, 1) + `$`)
			out, status := machine(t, image, config, "-machine", "q35", "-m", "64M", "-smp", cpus)
			if status != c.status || !want.MatchString(out) {
				t.Errorf("%s on %s CPUs: status %d, %s", c.args, cpus, status, out)
			}
		}
	}
}

// While a goroutine neither blocks nor can be preempted, another goroutine runs on the second CPU. The runtime wakes
// a thread for it, and the kernel schedules that thread on the other CPU without waiting for any further event.
func TestBeside(t *testing.T) {
	config := boot.Config{Args: []string{"guest", "beside"}, Env: []string{"GODEBUG=asyncpreemptoff=1"}}
	for _, cpus := range []string{"2", "4"} {
		if out, status := machine(t, bootable(t), config, "-machine", "q35", "-m", "64M", "-smp", cpus); status != 0 || out != "ran beside 20\n" {
			t.Errorf("on %s CPUs: status %d, %s", cpus, status, out)
		}
	}
}

// A file that is not a program for a virtual machine is rejected and not changed.
func TestPrepareRefuses(t *testing.T) {
	data := built(t)
	for name, spoil := range map[string]func(b []byte) []byte{
		"cut off":         func(b []byte) []byte { return b[:100] },
		"no ELF":          func(b []byte) []byte { b[1] = 'e'; return b },
		"for 32 bits":     func(b []byte) []byte { b[4] = 1; return b },
		"a library":       func(b []byte) []byte { b[16] = 3; return b },
		"linked low":      func(b []byte) []byte { copy(b[24:32], make([]byte, 8)); return b },
		"wild headers":    func(b []byte) []byte { b[38] = 1; return b },
		"too many":        func(b []byte) []byte { b[57] = 255; return b },
		"without a note":  func(b []byte) []byte { b[64+56] = 9; return b },
		"prepared before": func(b []byte) []byte { return prepared(t, b) },
	} {
		b := spoil(append([]byte(nil), data...))
		before := string(b)
		if err := Prepare(b); !errors.Is(err, ErrNotProgram) {
			t.Errorf("%s: error %v", name, err)
		}
		if string(b) != before {
			t.Errorf("%s: was changed", name)
		}
	}
}

func prepared(t testing.TB, b []byte) []byte {
	if err := Prepare(b); err != nil {
		t.Fatal(err)
	}
	return b
}

// Variables that the kernel does not need at boot are excluded from the loaded segment, unless the symbol table is
// missing.
func TestZeroed(t *testing.T) {
	const least = 60 << 20 // bytes that must not be in the loaded segment: the program has a larger array of zeros
	b := prepared(t, built(t))
	if z := boot.Zeroed(b[:pageSize]); z.Size() < least {
		t.Errorf("zeroed: %#x", z)
	}
	b = built(t)
	copy(b[40:48], make([]byte, 8)) // no section headers: offset 0
	copy(b[58:64], make([]byte, 6)) // number of section headers: 0
	if z := boot.Zeroed(prepared(t, b)[:pageSize]); z.Size() != 0 {
		t.Errorf("zeroed without a symbol table: %#x", z)
	}
}
