package kvm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/internal/debian"
	"loam/internal/race"
	"loam/test/kvm/report"
)

// A program boots with KVM, answers, gets the right time from KVM's clocks, computes correctly under
// load, and exits with its status, on two machine models.
func TestMachines(t *testing.T) {
	if race.Enabled {
		t.Skip("nothing in it is raced")
	}
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("there is no QEMU: apt-get install qemu-system-x86")
	}
	kernel, err := debian.FindKernel(t.Context(), debian.Cloud)
	if err != nil {
		t.Skip(err)
	}
	archive := filepath.Join(t.TempDir(), "initrd")
	if err := os.WriteFile(archive, pack(t, kernel, qemu), 0o644); err != nil {
		t.Fatal(err)
	}
	said := boot(t, qemu, kernel.Image, archive)
	for _, m := range report.Machines() {
		if want := fmt.Sprintf("%s%s, %d CPUs", report.OK, m.Model, m.CPUs); !strings.Contains(said, want) {
			t.Errorf("missing: %q", want)
		}
	}
	if t.Failed() || testing.Verbose() {
		t.Log(said)
	}
}

// bootTime is the longest time for everything, which takes half a minute.
const bootTime = 4 * time.Minute

// boot runs Linux in QEMU on an emulated processor with virtualisation until it powers off. It returns
// its output.
func boot(t *testing.T, qemu, kernel, archive string) string {
	all := ""
	if os.Getenv(report.All) != "" {
		all = " " + report.All + "=1" // Linux passes it on to its first process
	}
	ctx, cancel := context.WithTimeout(t.Context(), bootTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, qemu,
		"-machine", "q35,sata=off", "-accel", "tcg,thread=multi", "-cpu", "max,+svm,-xsave", "-m", "2G", "-smp", "2",
		"-display", "none", "-nodefaults", "-no-user-config", "-no-reboot", "-bios", "qboot.rom", "-serial", "stdio",
		"-kernel", kernel, "-initrd", archive,
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check random.trust_cpu=on audit=0"+
			all)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // QEMU is killed when the thread that started it ends
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err := errors.Join(err, ctx.Err()); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return string(out)
}

// modules are the KVM modules. Each comes after the modules that it depends on.
var modules = []string{"virt/lib/irqbypass.ko", "arch/x86/kvm/kvm.ko", "arch/x86/kvm/kvm-amd.ko"}

// firmware are the files that QEMU needs to start these machines.
var firmware = []string{"qboot.rom", "bios-256k.bin", "bios-microvm.bin", "linuxboot_dma.bin", "pvh.bin", "kvmvapic.bin"}

// pack returns the initial file system of Linux: its first process, QEMU with its libraries, modules,
// and the program on Loam.
func pack(t *testing.T, kernel *debian.Kernel, qemu string) []byte {
	t.Helper()
	files := map[string]string{
		report.First:                  build(t, "go", "loam/test/kvm/first"),
		report.Program:                build(t, build(t, "go", "loam/cmd/loam"), "loam/test/kvm/program"),
		"/usr/bin/qemu-system-x86_64": qemu,
	}
	from, err := kernel.Modules(modules...)
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range from {
		files[fmt.Sprintf("%s/%02d", report.Modules, i)] = file
	}
	for _, library := range libraries(t, qemu) {
		files[library] = library
	}
	for _, name := range firmware {
		files["/usr/share/qemu/"+name] = findFirmware(t, qemu, name)
	}
	var a debian.Archive
	made := map[string]bool{"/": true}
	for _, folder := range []string{"/dev", "/proc", "/sys", "/tmp"} {
		addFolder(&a, made, folder)
	}
	a.Device("dev/console", 5, 1)
	for at, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		addFolder(&a, made, filepath.Dir(at))
		a.File(at[1:], data)
	}
	return a.End()
}

// addFolder adds a folder and its parents unless they have been added.
func addFolder(a *debian.Archive, made map[string]bool, dir string) {
	if made[dir] {
		return
	}
	addFolder(a, made, filepath.Dir(dir))
	made[dir] = true
	a.Folder(dir[1:])
}

// build builds a static program with a command: "go" or "loam".
func build(t *testing.T, command, pkg string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command(command, "build", "-o", file, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return file
}

// libraries returns the absolute paths of the libraries of a program, according to ldd.
func libraries(t *testing.T, program string) []string {
	t.Helper()
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Fatalf("ldd %s: %v", program, err)
	}
	var all []string
	for line := range strings.Lines(string(out)) {
		for _, word := range strings.Fields(line) {
			if filepath.IsAbs(word) {
				all = append(all, word)
			}
		}
	}
	return all
}

// findFirmware returns the path of a file that belongs to QEMU.
func findFirmware(t *testing.T, qemu, name string) string {
	t.Helper()
	folders, err := exec.Command(qemu, "-L", "help").Output()
	if err != nil {
		t.Fatal(err)
	}
	for folder := range strings.Lines(string(folders)) {
		file := filepath.Join(strings.TrimSpace(folder), name)
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	t.Fatalf("QEMU came without %s", name)
	return ""
}
