// Package guest provides the environments of a whole program: a virtual machine with Loam or with Linux, and a
// process on Loam or on Linux.
//
// The program is package program, the same source in all four. One function in machine.go starts the
// machines, with the same monitor, devices, memory and CPUs; only the booted files differ. build.go
// builds all files before anything is measured. Package internal/debian provides the kernel to compare
// with.
package guest

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"loam/boot"
	"loam/internal/debian"
	"loam/test/bench/guest/layout"
	"loam/test/bench/subject"
	"loam/unikernel"
	"loam/unikernel/guest"
	"loam/unikernel/image"
)

// Files are the paths of the files that Build made.
type Files struct {
	Plain      string // the program, from a plain go build
	OnLoam     string // the program built for Loam, as a process
	Image      string // the program built for Loam, as a machine: the kernel
	Config     string // the configuration that is booted with Image
	Linux      string // Debian's kernel
	Archive    string // the initial file system for Linux
	Firmware   string // the firmware of q35, as with loam run; empty: QEMU's own
	ForProgram int64  // the size of Plain in bytes
}

// TCP ports of the measured program.
const (
	Port    = 8080 // HTTP
	TLSPort = 8443 // HTTPS
)

// source is the source code of package program, the measured program. Build writes it to a folder outside any module,
// because a program built inside this module would share Loam's go.mod.
//
//go:embed program/main.go
var source []byte

// Build builds all files in dir. It must run in the folder of this module.
func Build(ctx context.Context, dir string) (*Files, error) {
	f := &Files{
		Plain: filepath.Join(dir, "program"), Image: filepath.Join(dir, "image"), Config: filepath.Join(dir, "config"),
		Archive: filepath.Join(dir, "archive"),
	}
	program := filepath.Join(dir, "program.go")
	if err := os.WriteFile(program, source, 0o644); err != nil {
		return nil, err
	}
	if err := f.buildForLinux(ctx, program); err != nil {
		return nil, err
	}
	if err := f.buildForLoam(ctx, program); err != nil {
		return nil, err
	}
	e, err := unikernel.FindEmulator(ctx)
	if err != nil {
		return nil, err
	}
	f.Firmware = e.Firmware
	st, err := os.Stat(f.Plain)
	if err != nil {
		return nil, err
	}
	f.ForProgram = st.Size()
	return f, nil
}

// drivers are the modules that the card needs. Each comes after the modules that it depends on.
var drivers = []string{
	"drivers/virtio/virtio_ring.ko",
	"drivers/virtio/virtio.ko",
	"drivers/virtio/virtio_pci_legacy_dev.ko",
	"drivers/virtio/virtio_pci_modern_dev.ko",
	"drivers/virtio/virtio_pci.ko",
	"drivers/virtio/virtio_mmio.ko",
	"net/core/failover.ko",
	"drivers/net/net_failover.ko",
	"drivers/net/virtio_net.ko",
}

// goBuild builds a static program in the usual way.
func goBuild(ctx context.Context, output, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", output, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w: %s", pkg, err, out)
	}
	return nil
}

// buildForLinux builds the program and the first process, and packs them with the kernel modules into
// the archive.
func (f *Files) buildForLinux(ctx context.Context, program string) error {
	first := filepath.Join(filepath.Dir(program), "first")
	if err := goBuild(ctx, f.Plain, program); err != nil {
		return err
	}
	if err := goBuild(ctx, first, "./guest/first"); err != nil {
		return err
	}
	kernel, err := debian.FindKernel(ctx, debian.Cloud)
	if err != nil {
		return err
	}
	modules, err := kernel.Modules(drivers...)
	if err != nil {
		return err
	}
	f.Linux = kernel.Image
	var a debian.Archive
	for _, name := range []string{"dev", "proc", "sys", layout.Modules[1:]} {
		a.Folder(name)
	}
	a.Device("dev/console", 5, 1)
	for from, to := range map[string]string{first: layout.First, f.Plain: layout.Program} {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		a.File(to[1:], data)
	}
	for i, from := range modules {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		a.File(fmt.Sprintf("%s/%02d", layout.Modules[1:], i), data)
	}
	return os.WriteFile(f.Archive, a.End(), 0o644)
}

// buildForLoam builds the program for Loam as a process and as a machine, and writes the image and its
// configuration.
func (f *Files) buildForLoam(ctx context.Context, program string) error {
	onProcess, err := buildFor(ctx, program, unikernel.Process)
	if err != nil {
		return err
	}
	f.OnLoam = onProcess
	onMachine, err := buildFor(ctx, program, unikernel.Machine)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(onMachine)
	if err == nil {
		err = image.Prepare(data)
	}
	if err != nil {
		return err
	}
	network := guest.Config{Machine: true, Links: []guest.Link{{
		Kind: guest.Card, Name: layout.Interface, MTU: subject.MTU, Address: subject.Second,
	}}}
	config, err := boot.Config{Args: []string{layout.Program}, Env: []string{guest.Variable + "=" + network.Encode()}}.Encode()
	if err == nil {
		err = os.WriteFile(f.Image, data, 0o644)
	}
	if err == nil {
		err = os.WriteFile(f.Config, config, 0o644)
	}
	return err
}

// buildFor builds the program for Loam in the user's cache, and returns its path.
func buildFor(ctx context.Context, program string, p unikernel.Platform) (string, error) {
	plan, err := unikernel.NewPlan(ctx, unikernel.Target{Args: []string{program}, Dir: filepath.Dir(program), Platform: p})
	if err != nil {
		return "", err
	}
	return plan.Program, plan.Build(ctx)
}
