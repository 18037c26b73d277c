//go:build !race

package image

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/boot"
)

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
