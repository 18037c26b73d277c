//go:build !race

package image

import (
	"bufio"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/boot"
	"loam/unikernel/image/efi"
	"loam/unikernel/media"
)

// UEFI firmware of the package ovmf: the code, and the content of its memory for variables.
const (
	firmwareCode      = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	firmwareVariables = "/usr/share/OVMF/OVMF_VARS_4M.fd"
)

// uefiTime bounds a boot with UEFI firmware, which takes some seconds on a host at rest.
const uefiTime = 10 * time.Minute

// uefiProgram returns a program of testdata with a configuration, as Prepare and AddFiles change it.
func uefiProgram(t *testing.T, build func() ([]byte, error), c boot.Config) []byte {
	t.Helper()
	words, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	program, err := AddFiles(prepared(t, buildOf(t, build)), boot.EncodeArchives([][]byte{words}))
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// underUEFI returns the command that boots a program from a medium with UEFI firmware.
func underUEFI(t *testing.T, ctx context.Context, format string, program []byte, options ...string) *exec.Cmd {
	t.Helper()
	qemu := findQEMU(t)
	if _, err := os.Stat(firmwareCode); err != nil {
		t.Skipf("there is no %s: apt-get install ovmf", firmwareCode)
	}
	application, err := efi.Application(program)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "image")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(media.Write(f, format, application), f.Close()); err != nil {
		t.Fatal(err)
	}
	kind := "raw"
	if format == media.QCOW2 {
		kind = "qcow2"
	}
	cmd := exec.CommandContext(ctx, qemu, append([]string{"-accel", "tcg,thread=multi", "-cpu", "max", "-display", "none",
		"-nodefaults", "-serial", "stdio", "-no-reboot", "-device", "isa-debug-exit",
		"-drive", "if=pflash,format=raw,readonly=on,file=" + firmwareCode,
		"-drive", "if=pflash,format=raw,snapshot=on,file=" + firmwareVariables,
		"-drive", "if=none,id=medium,snapshot=on,format=" + kind + ",file=" + path}, options...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// uefiMachine boots a program with a configuration, and returns its output without the firmware's, and its exit status.
func uefiMachine(t *testing.T, build func() ([]byte, error), format string, c boot.Config, options ...string) (output string, status int) {
	t.Helper()
	program := uefiProgram(t, build, c) // may take minutes to build
	ctx, cancel := context.WithTimeout(t.Context(), uefiTime)
	defer cancel()
	cmd := underUEFI(t, ctx, format, program, options...)
	runtime.LockOSThread() // Pdeathsig is sent when this thread ends
	out, err := cmd.CombinedOutput()
	runtime.UnlockOSThread()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, own, started := strings.Cut(string(out), "BdsDxe: starting ")
	_, own, _ = strings.Cut(own, "\n")
	if !started {
		t.Fatalf("the firmware did not start the program: %s", out)
	}
	return own, cmd.ProcessState.ExitCode() >> 1
}

// UEFI firmware boots each medium, from disks of several kinds, on both machine models, with one and several CPUs, and with
// memory above 4 GiB.
func TestUEFI(t *testing.T) {
	for _, c := range []struct {
		format, want string
		options      []string
	}{
		{media.Raw, "spread over 2\n", []string{"-machine", "q35", "-m", "6G", "-smp", "2", "-device", "virtio-blk-pci,drive=medium"}},
		{media.QCOW2, "spread over 1\n", []string{"-machine", "pc", "-m", "128M", "-device", "virtio-blk-pci,drive=medium"}},
		{media.ISO, "spread over 4\n", []string{"-machine", "q35", "-m", "256M", "-smp", "4", "-device", "ide-cd,drive=medium"}},
		{media.Raw, "spread over 1\n", []string{"-machine", "q35", "-m", "256M", "-device", "nvme,serial=1,drive=medium"}},
	} {
		out, status := uefiMachine(t, guest, c.format, boot.Config{Args: []string{"guest", "spread"}}, c.options...)
		if status != 0 || out != c.want {
			t.Errorf("%s %q: status %d, %q", c.format, c.options, status, out)
		}
	}
}

// The machine ends with the exit status of the program.
func TestUEFIStatus(t *testing.T) {
	out, status := uefiMachine(t, guest, media.Raw, boot.Config{Args: []string{"guest", "exit"}},
		"-machine", "q35", "-m", "128M", "-device", "virtio-blk-pci,drive=medium")
	if status != 7 || out != "" {
		t.Errorf("status %d, %q", status, out)
	}
}

// Threads run in ring 3 at the address that the firmware chooses, also on a processor that is vulnerable to Meltdown. There,
// the page tables of ring 3 map only the entry code of the kernel.
func TestUEFIRing3(t *testing.T) {
	const isolated = "isolated true window false heap false stacks false image false cpu false table true"
	for _, c := range []struct{ name, processor, want string }{
		{"hostile", "max", "hostile 0"},
		{"hostile", vulnerable, "hostile 0"},
		{"isolated", vulnerable, isolated},
	} {
		out, _ := uefiMachine(t, ring3, media.Raw, boot.Config{Args: []string{"ring3", c.name}},
			"-machine", "q35", "-m", "256M", "-smp", "2", "-cpu", c.processor, "-device", "virtio-blk-pci,drive=medium")
		if !strings.Contains(out, c.want) {
			t.Errorf("%s %s: %s", c.name, c.processor, out)
		}
	}
}

// If the machine has too little memory for the program and its files, the loader writes a line to the firmware's console, and
// returns to the firmware.
func TestUEFITooLittleMemory(t *testing.T) {
	program := uefiProgram(t, guest, boot.Config{})
	binary.LittleEndian.PutUint64(filesHeader(t, program)[segmentInMemory:], 512<<20)
	ctx, cancel := context.WithTimeout(t.Context(), uefiTime)
	defer cancel()
	cmd := underUEFI(t, ctx, media.Raw, program, "-machine", "q35", "-m", "256M", "-device", "virtio-blk-pci,drive=medium")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // Pdeathsig is sent when this thread ends
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cancel()
	var all strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if line := lines.Text(); strings.HasSuffix(line, "loam: the machine has too little memory for the program and its files: give it more (-m)") {
			return
		}
		all.WriteString(lines.Text() + "\n")
	}
	t.Errorf("%q", all.String())
}

// filesHeader returns the program header of the files.
func filesHeader(t *testing.T, program []byte) []byte {
	t.Helper()
	le := binary.LittleEndian
	first, count := int(le.Uint64(program[32:])), int(le.Uint16(program[56:]))
	for i := range count {
		h := program[first+i*segmentSize:]
		if v := le.Uint64(h[segmentVirtual:]); le.Uint32(h) == uint32(elf.PT_LOAD) && v >= boot.Window && v < boot.Image {
			return h
		}
	}
	t.Fatal("the program has no files")
	return nil
}
