//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"loam/internal/debian"
	"loam/unikernel"
)

// Names of the two kernels that are compared.
const (
	onLinux = "Linux"
	onLoam  = "Loam"
)

const memory = "1024M"

// patience bounds one run of a machine.
const patience = 10 * time.Minute

// built holds the paths of everything that build makes: the root folder with all programs, the loam command, and Linux's files.
type built struct {
	dir, root, loam, first, kernel, firmware string
}

// run runs a workload in a machine, and returns its output.
func (b *built) run(ctx context.Context, kernel string, cpus int, w workload) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := b.onLoam(ctx, cpus, w)
	if kernel == onLinux {
		var err error
		if cmd, err = b.onLinux(ctx, cpus, w); err != nil {
			return "", err
		}
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	return output.String(), err
}

func (b *built) onLoam(ctx context.Context, cpus int, w workload) *exec.Cmd {
	args := []string{"run", "--platform", "vm", "--net", "none", "--root", b.root, "-w", "/tmp", "-m", memory, "--cpus", strconv.Itoa(cpus), w.command[0], "--"}
	cmd := exec.CommandContext(ctx, b.loam, append(args, w.command[1:]...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd
}

// parameters is the kernel command line of Linux. Linux prints nothing itself, and its mitigations of processor
// vulnerabilities are off, since Loam has none either.
const parameters = "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check random.trust_cpu=on audit=0"

func (b *built) onLinux(ctx context.Context, cpus int, w workload) (*exec.Cmd, error) {
	archive := filepath.Join(b.dir, "archive")
	if err := b.pack(archive, w); err != nil {
		return nil, err
	}
	args := []string{
		"-machine", "q35,sata=off", "-accel", "tcg", "-cpu", "max", "-m", memory, "-smp", strconv.Itoa(cpus),
		"-display", "none", "-nodefaults", "-no-user-config", "-no-reboot", "-serial", "stdio",
		"-kernel", b.kernel, "-initrd", archive, "-append", parameters,
	}
	if b.firmware != "" {
		args = append(args, "-bios", b.firmware)
	}
	return exec.CommandContext(ctx, "qemu-system-x86_64", args...), nil
}

// pack writes Linux's initial file system: the root folder, the first process and its command.
func (b *built) pack(name string, w workload) error {
	var a debian.Archive
	err := filepath.WalkDir(b.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == b.root {
			return err
		}
		in := strings.TrimPrefix(path, b.root+"/")
		if d.IsDir() {
			a.Folder(in)
			return nil
		}
		data, err := os.ReadFile(path)
		a.File(in, data)
		return err
	})
	if err != nil {
		return err
	}
	first, err := os.ReadFile(b.first)
	if err != nil {
		return err
	}
	a.File("init", first)
	command, err := json.Marshal(w.command)
	if err != nil {
		return err
	}
	a.File("command", command)
	a.Device("dev/console", 5, 1)
	return os.WriteFile(name, a.End(), 0o644)
}

// build makes everything that the runs need.
func build(ctx context.Context, dir string) (*built, error) {
	b := &built{dir: dir, root: filepath.Join(dir, "root"), loam: filepath.Join(dir, "loam"), first: filepath.Join(dir, "first")}
	for _, name := range []string{"dev", "proc", "sys", "tmp", "etc"} {
		if err := os.MkdirAll(filepath.Join(b.root, name), 0o755); err != nil {
			return nil, err
		}
	}
	for output, pkg := range map[string]string{b.loam: "./cmd/loam", b.first: "./test/processes/first", filepath.Join(b.root, "micro"): "./test/processes/micro"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", output, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build %s: %w: %s", pkg, err, text)
		}
	}
	for _, p := range programs {
		if err := b.add(p); err != nil {
			return nil, err
		}
	}
	k, err := debian.FindKernel(ctx)
	if err != nil {
		return nil, err
	}
	e, err := unikernel.FindEmulator(ctx)
	if err != nil {
		return nil, err
	}
	b.kernel, b.firmware = k.Image, e.Firmware
	return b, nil
}
