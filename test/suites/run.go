package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed testdata/suites.txt
var unitsText string

// unit is a part of a suite that runs in a machine of its own.
type unit struct {
	suite string   // the name of the suite's script without ".py"
	args  []string // arguments of the script: a time limit in seconds, and the names of the tests to run
}

// name returns the unit's name within its suite.
func (u unit) name() string {
	if len(u.args) > 1 {
		return u.args[1]
	}
	return u.suite
}

// file returns the path of the file that keeps the output of the unit. side is "loam" or "linux".
func (u unit) file(dir, side string) string {
	name := strings.NewReplacer("/", "-", "*", "").Replace(u.suite + "-" + u.name())
	return filepath.Join(dir, side, name+".txt")
}

// patient returns the arguments of the unit's script. The time limit is doubled on a busy host; load is the content of
// /proc/loadavg.
func (u unit) patient(load string) []string {
	args := slices.Clone(u.args)
	first, _, _ := strings.Cut(load, " ")
	if f, err := strconv.ParseFloat(first, 64); err == nil && f > busy {
		if n, err := strconv.Atoi(args[0]); err == nil {
			args[0] = strconv.Itoa(2 * n)
		}
	}
	return args
}

// busy is the load of a host on which time limits are doubled.
const busy = 8

// readUnits reads lines of "suite seconds argument...".
func readUnits(text string) ([]unit, error) {
	var list []unit
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0][0] == '#' {
			continue
		}
		if len(f) < 2 {
			return nil, fmt.Errorf("suites.txt: %q is no line of: suite seconds argument", line)
		}
		if n, err := strconv.Atoi(f[1]); err != nil || n <= 0 {
			return nil, fmt.Errorf("suites.txt: %q has no positive number of seconds", line)
		}
		list = append(list, unit{f[0], f[1:]})
	}
	return list, nil
}

// patience bounds a unit. Its tests have limits of their own.
const patience = 45 * time.Minute

// runUnits runs units on both sides, or on the side that was chosen. It calls ended after each unit.
func (o *options) runUnits(ctx context.Context, units []unit, ended func(unit) error) error {
	root, err := image(ctx)
	if err != nil {
		return err
	}
	scripts, err := filepath.Abs("test/suites/testdata")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(scripts, "start.sh")); err != nil {
		return fmt.Errorf("%w: run the command in the root of the tree", err)
	}
	bin, err := os.MkdirTemp("", "loam-suites-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	loam := filepath.Join(bin, "loam")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", loam, "./cmd/loam").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	for _, u := range units {
		if err := o.runUnit(ctx, u, loam, root, scripts); err != nil {
			return err
		}
		if err := ended(u); err != nil {
			return err
		}
	}
	return nil
}

// runUnit runs a unit. If the script of the unit fails, its error is in the kept output, and runUnit returns nil.
func (o *options) runUnit(ctx context.Context, u unit, loam, root, scripts string) error {
	load, _ := os.ReadFile("/proc/loadavg")
	args := append([]string{"/scripts/start.sh", u.suite + ".py"}, u.patient(string(load))...)
	if o.side != "linux" {
		cmd := append([]string{loam, "run", "--platform", "vm", "--net", "none", "--root", root, "-o", "snapshot", "-m", "2G",
			"--cpus", strconv.Itoa(o.cpus), "-t=false", "-v", scripts + ":/scripts", "/bin/bash", "--"}, args...)
		if err := runKept(ctx, u.file(o.keep, "loam"), cmd); err != nil {
			return err
		}
	}
	if o.side == "loam" {
		return nil
	}
	if _, err := os.Stat(u.file(o.keep, "linux")); err == nil && !o.again && o.side == "both" {
		return nil
	}
	cmd := append([]string{"unshare", "--mount", "--pid", "--ipc", "--uts", "--net", "--cgroup", "--fork", "--kill-child",
		"sh", "-c", inNamespaces, "sh", root, filepath.Join(filepath.Dir(loam), "copy.ext4"), scripts, "/bin/bash"}, args...)
	return runKept(ctx, u.file(o.keep, "linux"), cmd)
}

// runKept runs a command and keeps its output in a file, which gets its name when the command has ended.
func runKept(ctx context.Context, name string, command []string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name + ".part")
	if err != nil {
		return err
	}
	defer f.Close()
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	start := time.Now()
	cmd := exec.CommandContext(limited, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	err = cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		fmt.Fprintf(io.MultiWriter(f, os.Stdout), "\n%s: %v\n", name, err)
	}
	fmt.Printf("%s: %v\n", name, time.Since(start).Round(time.Second))
	return os.Rename(f.Name(), name)
}

// inNamespaces mounts a copy of the image and runs a script there: IMAGE COPY SCRIPTS COMMAND. The mounts end with their
// namespace. Settings of the host below /proc/sys cannot be changed, and its devices are not mounted.
var inNamespaces = strings.TrimSpace(`
set -e
mount --make-rprivate /
cp --sparse=always "$1" "$2"
mount -o loop "$2" /mnt
cd /mnt
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,ro,bind proc/sys
[ ! -e proc/sysrq-trigger ] || mount --bind /dev/null proc/sysrq-trigger
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t devpts devpts dev/pts -o newinstance,ptmxmode=666
ln -sf pts/ptmx dev/ptmx
mkdir -p scripts
mount --bind "$3" scripts
ip link set lo up
hostname vm
shift 3
exec chroot . "$@"
`)
