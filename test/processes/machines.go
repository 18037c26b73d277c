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

	template, dirty, disk string     // images of disks: see makeDisks
	lacks                 []string   // programs for the rows of disks that are not installed
	kinds                 []hardware // of disks; modules are paths of this system
	small                 string     // a root folder with one program, to measure the start of a machine
}

// rootOf returns the root folder for a workload.
func (b *built) rootOf(w workload) string {
	if w.whole != "" {
		return b.small
	}
	return b.root
}

// run runs a workload in a machine. It returns the output of the workload, and the time from the start of the machine to its
// end. On Loam, this time includes the packing of the root folder by the loam command.
func (b *built) run(ctx context.Context, kernel string, cpus int, w workload) (output string, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if w.disk != nil {
		if err := b.newDisk(ctx, w); err != nil {
			return "", 0, err
		}
	}
	cmd := b.onLoam(ctx, cpus, w)
	if kernel == onLinux {
		if cmd, err = b.onLinux(ctx, cpus, w); err != nil {
			return "", 0, err
		}
	}
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	start := time.Now()
	err = cmd.Run()
	return printed.String(), time.Since(start), err
}

// warmUp starts a machine with Loam. The first start compiles Loam for the machine, which must not count.
func (b *built) warmUp(ctx context.Context) error {
	if output, _, err := b.run(ctx, onLoam, 1, workload{command: []string{"/files", "nothing"}}); err != nil {
		return fmt.Errorf("first start of Loam: %w\n%s", err, output)
	}
	return nil
}

func (b *built) onLoam(ctx context.Context, cpus int, w workload) *exec.Cmd {
	args := []string{"run", "--platform", "vm", "--net", "none", "--root", b.rootOf(w), "-w", "/tmp", "-m", memory, "--cpus", strconv.Itoa(cpus)}
	if w.disk != nil {
		args = append(args, "--disk", w.disk.name+":"+b.disk+":"+atDisk)
	}
	args = append(args, w.command[0], "--")
	cmd := exec.CommandContext(ctx, b.loam, append(args, w.command[1:]...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd
}

// parameters is the kernel command line of Linux. Linux prints nothing itself, and its mitigations of processor
// vulnerabilities are off, since Loam has none on this processor either.
const parameters = "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check random.trust_cpu=on audit=0"

func (b *built) onLinux(ctx context.Context, cpus int, w workload) (*exec.Cmd, error) {
	archive := filepath.Join(b.dir, "archive")
	if err := b.pack(archive, w); err != nil {
		return nil, err
	}
	kernel := b.kernel
	if w.disk != nil {
		kernel = w.disk.kernel
	}
	args := []string{
		"-machine", "q35,sata=off", "-accel", "tcg", "-cpu", "max", "-m", memory, "-smp", strconv.Itoa(cpus),
		"-display", "none", "-nodefaults", "-no-user-config", "-no-reboot", "-serial", "stdio",
		"-kernel", kernel, "-initrd", archive, "-append", parameters,
	}
	if b.firmware != "" {
		args = append(args, "-bios", b.firmware)
	}
	if w.disk != nil {
		args = append(args, "-blockdev", "driver=raw,node-name=disk0,file.driver=file,file.filename="+b.disk)
		args = append(args, w.disk.options...)
	}
	return exec.CommandContext(ctx, "qemu-system-x86_64", args...), nil
}

// pack writes Linux's initial file system: the root folder, the first process and its command.
func (b *built) pack(name string, w workload) error {
	var a debian.Archive
	root := b.rootOf(w)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		in := strings.TrimPrefix(path, root+"/")
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
	if w.disk != nil {
		a.File("disk", []byte(w.disk.file))
		a.Folder("modules")
		for i, file := range w.disk.modules {
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			a.File(fmt.Sprintf("modules/%02d", i), data)
		}
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
	b := &built{
		dir: dir, root: filepath.Join(dir, "root"), small: filepath.Join(dir, "small"), loam: filepath.Join(dir, "loam"), first: filepath.Join(dir, "first"),
	}
	for _, root := range []string{b.root, b.small} {
		for _, name := range []string{"dev", "proc", "sys", "tmp", "etc", "data"} {
			if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
				return nil, err
			}
		}
	}
	for output, pkg := range map[string]string{
		b.loam: "./cmd/loam", b.first: "./test/processes/first",
		filepath.Join(b.root, "micro"): "./test/processes/micro", filepath.Join(b.root, "files"): "./test/processes/files",
	} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", output, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build %s: %w: %s", pkg, err, text)
		}
	}
	for _, p := range programs {
		if *only == onDisk {
			break
		}
		if err := b.add(p); err != nil {
			return nil, err
		}
	}
	k, err := debian.FindKernel(ctx, debian.Cloud)
	if err != nil {
		return nil, err
	}
	e, err := unikernel.FindEmulator(ctx)
	if err != nil {
		return nil, err
	}
	b.kernel, b.firmware = k.Image, e.Firmware
	if *only != onDisk {
		return b, nil
	}
	if b.kinds, err = findKinds(*devices); err != nil {
		return nil, err
	}
	for i := range b.kinds {
		if err := b.kinds[i].find(ctx); err != nil {
			return nil, err
		}
	}
	if err := copyFile(filepath.Join(b.root, "files"), filepath.Join(b.small, "files")); err != nil {
		return nil, err
	}
	if err := b.addDisks(ctx); err != nil {
		return nil, err
	}
	return b, b.makeDisks(ctx)
}
