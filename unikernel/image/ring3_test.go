//go:build !race

package image

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loam/boot"
)

// Threads run in ring 3, each case on one CPU and on two: see testdata/ring3.
//
//   - proof: system calls, page faults, exceptions and interrupts, while garbage is collected
//   - hostile: privileged instructions, wrong selectors, forged flags, unmapped addresses
//   - state: registers across calls, time, and changes of CPU
//   - xsave: the same, as on a processor with AVX-512
//   - spaces: pages are unmapped while threads read them
//   - kick: a thread is interrupted by another goroutine
//   - copies: the kernel copies memory of a process through its mapping
//   - churn: processes are created and closed without losing a page
func TestRing3(t *testing.T) {
	image := bootableOf(t, ring3)
	for name, want := range map[string]string{
		"proof":   "proved",
		"hostile": "hostile 0",
		"state":   "state 0 true",
		"xsave":   "state 0 true",
		"spaces":  "spaces 0 true true true",
		"kick":    "kicked",
		"copies":  "copied 0",
		"churn":   "churned true",
	} {
		for _, cpus := range []string{"1", "2"} {
			expectRing3(t, image, name, want, "-machine", "q35", "-smp", cpus)
		}
	}
}

// Ring 3 is confined even without the processor features that additionally protect ring 0.
func TestRing3WithoutFeatures(t *testing.T) {
	image := bootableOf(t, ring3)
	for _, model := range []string{"max,-smap,-smep", "max,-avx,-avx2"} {
		expectRing3(t, image, "hostile", "hostile 0", "-machine", "q35", "-cpu", model)
		expectRing3(t, image, "copies", "copied 0", "-machine", "q35", "-cpu", model)
	}
	expectRing3(t, image, "proof", "user: the processor cannot run programs in ring 3", "-machine", "q35", "-cpu", "qemu64")
}

// vulnerable is a processor that is vulnerable to Meltdown: QEMU's own, with Intel's name.
const vulnerable = "max,vendor=GenuineIntel"

// On a vulnerable processor, threads in ring 3 behave as on others, although other code enters ring 3 and the kernel.
func TestRing3Vulnerable(t *testing.T) {
	image := bootableOf(t, ring3)
	for name, want := range map[string]string{
		"proof":   "proved",
		"hostile": "hostile 0",
		"state":   "state 0 true",
		"xsave":   "state 0 true",
		"spaces":  "spaces 0 true true true",
		"copies":  "copied 0",
		"churn":   "churned true",
	} {
		for _, cpus := range []string{"1", "2"} {
			expectRing3(t, image, name, want, "-machine", "q35", "-smp", cpus, "-cpu", vulnerable)
		}
	}
	expectRing3(t, image, "hostile", "hostile 0", "-machine", "q35", "-cpu", vulnerable+",-smap,-smep,-avx,-avx2")
}

// On a vulnerable processor, the page tables of ring 3 map only the pages of the kernel that the entry code needs. On other
// processors, they map the kernel, and there is no area for the entry code. The area has no register of an earlier fault.
func TestRing3Isolated(t *testing.T) {
	image := bootableOf(t, ring3)
	const registers = "registers of ring 3 false of the kernel false\n"
	const own = "isolated true window false heap false stacks false image false cpu false table true areas true true after false before false code true true\n" + registers
	const shared = "isolated false window true heap true stacks true image true cpu true table false areas false false after false before false code true true\n" + registers
	for processor, want := range map[string]string{vulnerable: own, "Skylake-Client-v1": own, "max,vendor=AuthenticAMD": shared, "EPYC": shared} {
		for _, cpus := range []string{"1", "2"} {
			expectRing3(t, image, "isolated", want, "-machine", "q35", "-smp", cpus, "-cpu", processor)
		}
	}
}

// The code that is mapped while ring 3 runs is not larger than the kernel assumes.
func TestIsolatedSize(t *testing.T) {
	f, err := elf.NewFile(bytes.NewReader(buildOf(t, ring3)))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "runtime.loamIsolated" })
	if i < 0 || symbols[i].Size > boot.IsolatedSize || symbols[i].Value%16 != 0 {
		t.Errorf("%+v, want at most %d bytes", symbols[max(i, 0)], boot.IsolatedSize)
	}
}

// An ordinary, unmodified Linux program built by the go command runs in ring 3: threads, futexes, memory,
// its own garbage collector.
func TestRing3Program(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hello")
	cmd := exec.Command("go", "build", "-o", file, "./testdata/hello")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := AddFiles(prepared(t, buildOf(t, ring3)), program)
	if err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "ring3.elf")
	if err := os.WriteFile(image, data, 0o644); err != nil {
		t.Fatal(err)
	}
	c := boot.Config{Args: []string{"ring3", "program", "hello", "there"}}
	const want = "hello from ring 3 [hello there] [199990000 199990000 199990000 199990000]\n"
	for _, cpus := range []string{"1", "2"} {
		if out, status := machine(t, image, c, "-machine", "q35", "-m", "256M", "-smp", cpus); status != 42 || out != want {
			t.Errorf("on %s CPUs: status %d, %s", cpus, status, out)
		}
	}
}

func expectRing3(t *testing.T, image, name, want string, options ...string) {
	t.Helper()
	c := boot.Config{Args: []string{"ring3", name}}
	out, _ := machine(t, image, c, append([]string{"-m", "256M"}, options...)...)
	if !strings.Contains(out, want) {
		t.Errorf("%s %v: %s", name, options, out)
	}
}

// BenchmarkRing3 reports the time of a system call from ring 3 to the goroutine and back, and of a page fault that is
// served. For comparison, it also reports the time of a call from the Go runtime to package kernel. An operation is
// the whole measurement.
func BenchmarkRing3(b *testing.B) {
	image := bootableOf(b, ring3)
	c := boot.Config{Args: []string{"ring3", "bench"}}
	for b.Loop() {
		out, _ := machine(b, image, c, "-m", "256M", "-machine", "q35")
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			var name string
			var nanos, ticks float64
			if _, err := fmt.Sscanf(line, "%s %f ns %f ticks", &name, &nanos, &ticks); err != nil {
				b.Fatal(out)
			}
			b.ReportMetric(nanos, name+"-ns")
			b.ReportMetric(ticks, name+"-ticks")
		}
	}
}
