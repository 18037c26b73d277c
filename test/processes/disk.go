//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// With -only disk, the machines have a virtio disk with an ext4 file system of mke2fs, and the rows measure files on it. Each
// run of a machine has a new copy of the image.

const (
	onDisk   = "disk" // the value of -only
	diskSize = "768M"
	atDisk   = "/data" // where the disk is mounted
	nested   = atDisk + "/a/b"
)

// diskPrograms are the programs of this system that the rows of disks run, if they are installed.
var diskPrograms = []string{"/usr/bin/dash", "/usr/bin/git", "/usr/bin/gcc", "/usr/bin/as", "/usr/bin/ld"}

// otherPrograms are the programs in the folder of -programs.
var otherPrograms = []string{"fio", "mailbench", "mail-qman", "mail-enqueue", "mail-deliver"}

// makeDisks makes the images: a new file system, and one whose journal must be recovered.
func (b *built) makeDisks(ctx context.Context) error {
	b.template, b.dirty, b.disk = filepath.Join(b.dir, "new.img"), filepath.Join(b.dir, "dirty.img"), filepath.Join(b.dir, "disk.img")
	if err := command(ctx, "mke2fs", "-q", "-t", "ext4", b.template, diskSize); err != nil {
		return err
	}
	return b.makeDirty(ctx)
}

// dirtyBlocks is the number of blocks in the journal of the image that must be recovered.
const dirtyBlocks = 3000

// makeDirty makes a file system whose journal has a transaction that writes to unused blocks.
func (b *built) makeDirty(ctx context.Context) error {
	const first = 50_000 // the blocks are not used
	if err := command(ctx, "cp", "--sparse=always", b.template, b.dirty); err != nil {
		return err
	}
	const blockSize = 4096
	content := filepath.Join(b.dir, "content")
	text := strings.Repeat("recovered", dirtyBlocks*blockSize/len("recovered")+1)
	if err := os.WriteFile(content, []byte(text[:dirtyBlocks*blockSize]), 0o644); err != nil {
		return err
	}
	script := filepath.Join(b.dir, "journal")
	text = fmt.Sprintf("jo\njw -b %d-%d %s\njc\n", first, first+dirtyBlocks-1, content)
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		return err
	}
	if err := command(ctx, "debugfs", "-w", "-f", script, b.dirty); err != nil {
		return err
	}
	head, err := exec.CommandContext(ctx, "dumpe2fs", "-h", b.dirty).Output() // debugfs succeeds also if a command of the script fails
	if err != nil || !strings.Contains(string(head), "needs_recovery") {
		return fmt.Errorf("debugfs has not made a journal to recover: %v\n%s", err, head)
	}
	return nil
}

func command(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// newDisk gives the next machine a new disk.
func (b *built) newDisk(ctx context.Context, w workload) error {
	from := b.template
	if w.recovers {
		from = b.dirty
	}
	return command(ctx, "cp", "--sparse=always", from, b.disk)
}

// diskOptions are the options of QEMU for the disk of a Linux guest. They are those of Loam's machines.
func (b *built) diskOptions() []string {
	return []string{
		"-blockdev", "driver=raw,node-name=disk0,file.driver=file,file.filename=" + b.disk,
		"-device", "virtio-blk-pci,werror=report,rerror=report,drive=disk0",
	}
}

// diskModules are the drivers that Linux needs for the disk, each after those that it depends on.
var diskModules = []string{
	"drivers/virtio/virtio_ring.ko", "drivers/virtio/virtio.ko", "drivers/virtio/virtio_pci_legacy_dev.ko",
	"drivers/virtio/virtio_pci_modern_dev.ko", "drivers/virtio/virtio_pci.ko", "drivers/block/virtio_blk.ko",
}

// addDisks adds the programs of the rows of disks to the root folder, and the sources that are cloned and compiled.
func (b *built) addDisks(ctx context.Context) error {
	if *rows != "" {
		return nil // a profile is of a row of micro
	}
	for _, p := range diskPrograms {
		if !exists(p) {
			b.lacks = append(b.lacks, filepath.Base(p))
			continue
		}
		if err := b.add(p); err != nil {
			return err
		}
	}
	for _, name := range otherPrograms {
		from := filepath.Join(*others, name)
		if *others == "" || !exists(from) {
			b.lacks = append(b.lacks, name)
			continue
		}
		if err := copyFile(from, filepath.Join(b.root, "bin", name)); err != nil {
			return err
		}
	}
	if b.lacksFor(workload{name: "git"}) {
		return nil
	}
	if err := b.addCompiler(ctx); err != nil {
		return err
	}
	return b.addSources(ctx)
}

// diskWorkloads are the workloads of -only disk.
func (b *built) diskWorkloads(cpus int) []workload {
	copies := strconv.Itoa(cpus)
	named := func(row, name string) workload {
		return workload{
			name: row, disk: true,
			command: []string{"/micro", "-span", span.String(), "-only", row, "-dir", nested, "-copies", copies},
			parse: func(output string, add func(string, float64)) {
				parseMicro(output, func(_ string, ns float64) { add(name, ns) })
			},
		}
	}
	all := []workload{
		named("open and close of a file", "open and close of a cached name"),
		named("stat of a file", "stat of a cached name"),
		{name: "files", disk: true, command: []string{"/files", "small", atDisk + "/small", "2000", "100"}, parse: parseMicro},
		{name: "fio", disk: true, command: []string{"/usr/bin/dash", "-c", fio}, parse: parseFio},
		{name: "git", disk: true, command: []string{"/usr/bin/dash", "-c", buildSources}, parse: parseMicro},
		{name: "start", disk: true, command: []string{"/files", "nothing"}, whole: "start and end of the machine"},
		{name: "recovery", disk: true, command: []string{"/files", "nothing"}, recovers: true,
			whole: fmt.Sprintf("the same, and recovery of %s blocks", instructions(dirtyBlocks))},
	}
	for _, in := range []string{"/tmp", atDisk} {
		script := fmt.Sprintf("cd /bin && exec ./mailbench %s %s", in, copies)
		all = append(all, workload{name: "mailbench", disk: true, command: []string{"/usr/bin/dash", "-c", script}, parse: parseMail(in)})
	}
	kept := all[:0]
	for _, w := range all {
		if (*family == "" || strings.HasPrefix(w.name, *family)) && !b.lacksFor(w) && !(*many && w.whole != "") {
			kept = append(kept, w)
		}
	}
	return kept
}

// needs are the programs of workloads.
var needs = map[string][]string{"fio": otherPrograms[:1], "mailbench": otherPrograms[1:], "git": {"git", "gcc", "as", "ld"}}

// lacksFor reports whether a program that a workload needs is missing.
func (b *built) lacksFor(w workload) bool {
	return slices.ContainsFunc(needs[w.name], func(p string) bool { return slices.Contains(b.lacks, p) })
}

// fio runs one job after another. The unit of results is one request. A direct write precedes each job with direct reads: it
// removes the blocks of the file from the caches, on both systems.
const fio = `
cd /data
job() {
	name=$1; shift
	/bin/fio --name="$name" --filename=/data/fio --ioengine=psync --thread --output-format=terse --terse-version=3 "$@"
}
job 'write of 64 KiB, sequential' --rw=write --bs=64k --size=64m
job 'write of 64 KiB, sequential, and fsync at the end' --rw=write --bs=64k --size=64m --end_fsync=1
job 'read of 64 KiB, sequential, cached' --rw=read --bs=64k --size=64m --invalidate=0
job 'write of 64 KiB, sequential, O_DIRECT' --rw=write --bs=64k --size=64m --direct=1
job 'read of 64 KiB, sequential, O_DIRECT' --rw=read --bs=64k --size=64m --direct=1
job 'write of 4 KiB, random' --rw=randwrite --bs=4k --size=64m --io_size=16m --randseed=7
job 'write of 4 KiB, random, fsync after each' --rw=randwrite --bs=4k --size=64m --io_size=512k --fsync=1 --randseed=7
job 'read of 4 KiB, random, cached' --rw=randread --bs=4k --size=64m --io_size=32m --invalidate=0 --randseed=7
job 'write of 64 KiB, sequential, O_DIRECT, again' --rw=write --bs=64k --size=64m --direct=1
job 'read of 4 KiB, random, O_DIRECT' --rw=randread --bs=4k --size=64m --io_size=4m --direct=1 --randseed=7
`

// Fields of a line of fio's terse format, version 3: the name, and the KiB and the milliseconds of reads and of writes. fio
// measures the time of a job to a millisecond.
const (
	fioName              = 2
	fioReadKB, fioReadMS = 5, 8
	fioKB, fioMS         = 46, 49
)

func parseFio(output string, add func(string, float64)) {
	for lines := bufio.NewScanner(strings.NewReader(output)); lines.Scan(); {
		fields := strings.Split(strings.TrimSpace(lines.Text()), ";")
		if len(fields) <= fioMS || fields[0] != "3" {
			continue
		}
		name := fields[fioName]
		unit := 4.0
		if strings.Contains(name, "64 KiB") {
			unit = 64
		}
		for _, at := range [...][2]int{{fioReadKB, fioReadMS}, {fioKB, fioMS}} {
			kb, _ := strconv.ParseFloat(fields[at[0]], 64)
			ms, _ := strconv.ParseFloat(fields[at[1]], 64)
			if kb > 0 && ms > 0 {
				add("fio: "+name, ms*1e6/(kb/unit))
			}
		}
	}
}

// parseMail returns a function that reads the line "N messages/sec" of mailbench.
func parseMail(in string) func(string, func(string, float64)) {
	row := "mailbench: a message, with files on the disk"
	if in != atDisk {
		row = "mailbench: a message, with files in memory"
	}
	return func(output string, add func(string, float64)) {
		for lines := bufio.NewScanner(strings.NewReader(output)); lines.Scan(); {
			rate, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(lines.Text()), " messages/sec"), 64)
			if err == nil && rate > 0 && strings.HasSuffix(strings.TrimSpace(lines.Text()), "messages/sec") {
				add(row, 1e9/rate)
			}
		}
	}
}

// waits reports whether a row measures waits for the disk. With -count these have no meaning, since the clock stands still
// meanwhile, or jumps to the next timer.
func waits(row string) bool {
	return strings.Contains(row, "fsync") || strings.Contains(row, "O_DIRECT")
}

// diskIntro returns the beginning of the page of -only disk. It names the command that made the page.
func (t *table) diskIntro(date string) string {
	unit, better := "microseconds of one operation: the median of all runs", "time divided by the second: above 1, Loam is faster"
	if *many {
		unit, better = "instructions of the machine for one operation", "number divided by the second: above 1, Loam needs fewer instructions"
	}
	return fmt.Sprintf(diskText, strings.Join(os.Args[1:], " "), date, runtime.NumCPU(), unit, better)
}

const diskText = `# Files on a disk, on Loam beside a Linux guest

This page was made by ` + "`go run ./test/processes %s`" + ` on %s, on a machine with %d CPUs. Loam and Linux run the same
program files in virtual machines of QEMU, which emulates every instruction (TCG), with the same memory and CPUs, and with the
same virtio disk: a new image of 768 MiB for each run, which mke2fs has made and QEMU stores in a file. Linux is Debian's cloud
kernel without mitigations, and mounts the disk with its default options.

- **operation**: each row has one operation. The rows of cached names are the throughput of one process for each CPU.
- **Linux** and **Loam** are the %s.
- **Linux / Loam** is the first %s.
`
