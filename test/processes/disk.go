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

	"loam/internal/debian"
)

// With -only disk, the machines have a disk with an ext4 file system of mke2fs, and the rows measure files on it. Each run of a
// machine has a new copy of the image.

const (
	onDisk   = "disk" // the value of -only
	diskSize = "768M"
	atDisk   = "/data" // where the disk is mounted
	nested   = atDisk + "/a/b"
)

// diskPrograms are the programs of this system that the rows of disks run, if they are installed.
var diskPrograms = []string{
	"/usr/bin/dash", "/usr/bin/git", "/usr/bin/gcc", "/usr/bin/as", "/usr/bin/ld", "/usr/bin/postmark", "/usr/bin/fs_mark",
}

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

// hardware is the kind of a disk.
type hardware struct {
	name    string         // in -device, and in the options of the loam command
	options []string       // of QEMU, for a Linux guest: those of Loam's machines
	flavour debian.Flavour // of the kernel that has the drivers
	modules []string       // drivers that Linux needs, each after those that it depends on
	file    string         // name of the disk on Linux
	kernel  string         // path of Linux's kernel
}

var kinds = []hardware{
	{name: "virtio", options: []string{"-device", "virtio-blk-pci,werror=report,rerror=report,drive=disk0"}, file: "/dev/vda", flavour: debian.Cloud, modules: []string{
		"drivers/virtio/virtio_ring.ko", "drivers/virtio/virtio.ko", "drivers/virtio/virtio_pci_legacy_dev.ko",
		"drivers/virtio/virtio_pci_modern_dev.ko", "drivers/virtio/virtio_pci.ko", "drivers/block/virtio_blk.ko",
	}},
	{name: "nvme", options: []string{"-device", "nvme,serial=disk0,drive=disk0"}, file: "/dev/nvme0n1", flavour: debian.Cloud}, // the driver is in the kernel
	{name: "ahci", options: []string{"-device", "ich9-ahci,id=serial", "-device", "ide-hd,bus=serial.0,werror=report,rerror=report,drive=disk0"}, file: "/dev/sda", flavour: debian.General, modules: []string{
		"drivers/scsi/scsi_common.ko", "drivers/scsi/scsi_mod.ko", "drivers/ata/libata.ko", "drivers/ata/libahci.ko", "drivers/ata/ahci.ko",
		"crypto/crct10dif_common.ko", "crypto/crct10dif_generic.ko", "lib/crc-t10dif.ko", "lib/crc64.ko", "crypto/crc64_rocksoft_generic.ko",
		"lib/crc64-rocksoft.ko", "block/t10-pi.ko", "drivers/scsi/sd_mod.ko",
		"arch/x86/crypto/crc32c-intel.ko", "lib/crc16.ko", "fs/mbcache.ko", "fs/jbd2/jbd2.ko", "fs/ext4/ext4.ko",
	}},
}

// findKinds returns the kinds of disks that a list names.
func findKinds(list string) (found []hardware, err error) {
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(kinds, func(h hardware) bool { return h.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-device %s: there is no kind of disk %q", list, name)
		}
		found = append(found, kinds[i])
	}
	return found, nil
}

// find sets the kernel and the paths of its modules.
func (h *hardware) find(ctx context.Context) error {
	k, err := debian.FindKernel(ctx, h.flavour)
	if err != nil {
		return err
	}
	h.kernel = k.Image
	h.modules, err = k.Modules(h.modules...)
	return err
}

// row returns the name of a row with this kind of disk.
func (h *hardware) row(name string) string {
	if h.name == kinds[0].name {
		return name
	}
	return name + " (" + h.name + ")"
}

// addDisks adds the programs of the rows of disks to the root folder, and the sources that are cloned and compiled.
func (b *built) addDisks(ctx context.Context) error {
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

// mostCPUs is the number of CPUs above which only the rows of cached names run.
const mostCPUs = 2

// diskWorkloads are the workloads of -only disk.
func (b *built) diskWorkloads(cpus int) (kept []workload) {
	for _, h := range b.kinds {
		for _, w := range diskWorkloadsOn(h, cpus) {
			if w.chosen() && !b.lacksFor(w) && !(*many && w.whole != "") && (cpus <= mostCPUs || w.cached) {
				kept = append(kept, w)
			}
		}
	}
	return kept
}

// chosen reports whether -family names the workload.
func (w *workload) chosen() bool {
	return slices.ContainsFunc(strings.Split(*family, ","), func(name string) bool { return strings.HasPrefix(w.name, name) })
}

func diskWorkloadsOn(h hardware, cpus int) []workload {
	copies := strconv.Itoa(cpus)
	named := func(row, name string) workload {
		return workload{
			name: name, cached: true,
			command: []string{"/micro", "-span", span.String(), "-only", row, "-dir", nested, "-copies", copies},
			parse: func(output string, add func(string, float64)) {
				parseMicro(output, func(_ string, ns float64) { add(name, ns) })
			},
		}
	}
	all := []workload{
		named("open and close of a file", "open and close of a cached name"),
		named("stat of a file", "stat of a cached name"),
		named("getppid, a call that does nothing", "bound: getppid, a call that does nothing"),
		named("dup and close", "bound: dup and close of a descriptor"),
		{name: "files", command: []string{"/files", "small", atDisk + "/small", "2000", "100"}, parse: parseMicro},
		{name: "fio", command: shell(fioScript(fioJobs)), parse: parseFio},
		{name: "postmark", command: shell(postmark), parse: parseMicro},
		{name: "fs_mark", command: shell(fsMark), parse: parseMicro},
		{name: "git", command: shell(buildSources), parse: parseMicro},
		{name: "mailbench in memory", command: mailbench("/tmp", copies), parse: parseMail("/tmp")},
		{name: "mailbench on the disk", command: mailbench(atDisk, copies), parse: parseMail(atDisk)},
		{name: "start", command: []string{"/files", "nothing"}, whole: "start and end of the machine"},
		{name: "start", command: []string{"/files", "nothing"}, recovers: true,
			whole: fmt.Sprintf("start and end of the machine, and recovery of %s blocks", instructions(dirtyBlocks))},
	}
	for i := range all {
		all[i].disk = &h
		if all[i].whole != "" {
			all[i].whole = h.row(all[i].whole)
		}
		if parse := all[i].parse; parse != nil {
			all[i].parse = func(output string, add func(string, float64)) {
				parse(output, func(row string, ns float64) { add(h.row(row), ns) })
			}
		}
	}
	return all
}

// postmark runs NetApp's PostMark (Debian package postmark): it creates small files, reads, appends to, creates and removes files
// in random order, and removes them.
const postmark = `
/files folders /data/postmark
printf 'set location /data/postmark\nset number 500\nset transactions 2000\nset size 500 10000\nset seed 42\nrun\nquit\n' > /tmp/postmark
exec /files time 'postmark: 500 files, 2,000 transactions' /usr/bin/postmark /tmp/postmark
`

// fsMark runs fs_mark (Debian package fsmark) without and with fsync: it creates files in ten directories and removes them.
const fsMark = `
cd /tmp
/files folders /data/mark
/files time 'fs_mark: 1,000 files of 10 KiB' /usr/bin/fs_mark -d /data/mark -D 10 -N 100 -n 1000 -s 10240 -t 1 -S 0
exec /files time 'fs_mark: 300 files of 10 KiB, fsync of each' /usr/bin/fs_mark -d /data/mark -D 10 -N 30 -n 300 -s 10240 -t 1 -S 1
`

func shell(script string) []string { return []string{"/usr/bin/dash", "-c", script} }

// mailbench returns the command of the rows of mailbench. With -count the programs of mailbench run for a number of messages, because mailbench
// runs for seven seconds, in which an emulator that counts would execute seven billion instructions.
func mailbench(in, copies string) []string {
	if *many {
		return shell(fmt.Sprintf(mail, in, mailRow(in), mailMessages))
	}
	return shell(fmt.Sprintf("cd /bin && exec ./mailbench %s %s", in, copies))
}

const mailMessages = 100

// mail is the script for mailbench's programs: it sends messages and waits until all are delivered.
const mail = `
in=%s
/files folders $in/spool/pid $in/spool/todo $in/spool/mess $in/mail/user/tmp $in/mail/user/new $in/mail/user/cur
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
	echo "Received: line $i of the header of a message"
done > $in/msg
cd /bin && exec /files time '%s' /usr/bin/dash -c '
	./mail-qman -a none $0/spool $0/mail 1 &
	until [ -e $0/spool/notify ]; do /files nothing; done
	i=0
	while [ $i -lt %d ]; do ./mail-enqueue $0/spool user < $0/msg || exit 1; i=$((i + 1)); done
	./mail-enqueue --exit $0/spool
	wait $!
' $in
`

// endlessDisk returns a workload for a row of a disk, which prints the line of running and then runs for a long time.
func (b *built) endlessDisk(row string) (workload, error) {
	w := workload{name: row, disk: &b.kinds[0], warm: warmDisk}
	for i, j := range fioJobs {
		if row == "fio: "+j.name {
			w.command = shell(fioScript(fioJobs[:i]) + start + fioScript([]fioJob{{j.name, j.options + " --time_based --runtime=600"}}))
			return w, nil
		}
	}
	for _, in := range []string{"/tmp", atDisk} {
		if row == mailRow(in) {
			w.command = shell(start + mailbench(in, "1")[2])
			return w, nil
		}
	}
	for prefix, name := range map[string]string{"open and close of a": "open and close of a file", "stat of a": "stat of a file"} {
		if strings.HasPrefix(row, prefix) {
			w.command, w.warm = append(endless(name), "-dir", nested), warm
			return w, nil
		}
	}
	if before, after, found := strings.Cut(buildSources, "/files time '"+row); found {
		w.command, w.sample = shell(before+start+"/files time '"+row+after), sampleLong
		return w, nil
	}
	return w, fmt.Errorf("there is no row %q that can be profiled", row)
}

// needs are the programs of workloads, by the first word of their names.
var needs = map[string][]string{
	"fio": otherPrograms[:1], "mailbench": otherPrograms[1:], "git": {"git", "gcc", "as", "ld"},
	"postmark": {"postmark"}, "fs_mark": {"fs_mark"},
}

// lacksFor reports whether a program that a workload needs is missing.
func (b *built) lacksFor(w workload) bool {
	kind, _, _ := strings.Cut(w.name, " ")
	return slices.ContainsFunc(needs[kind], func(p string) bool { return slices.Contains(b.lacks, p) })
}

// fioJob is a row of fio. The unit of its result is one request.
type fioJob struct{ name, options string }

// fioJobs run one after another, with one file. A direct write precedes each job with direct reads: it removes the blocks of
// the file from the caches, on both systems.
var fioJobs = []fioJob{
	{"write of 64 KiB, sequential", "--rw=write --bs=64k --size=64m"},
	{"write of 64 KiB, sequential, and fsync at the end", "--rw=write --bs=64k --size=64m --end_fsync=1"},
	{"read of 64 KiB, sequential, cached", "--rw=read --bs=64k --size=64m --invalidate=0"},
	{"read of 4 KiB, random, cached", "--rw=randread --bs=4k --size=64m --io_size=32m --invalidate=0 --randseed=7"},
	{"write of 64 KiB, sequential, O_DIRECT", "--rw=write --bs=64k --size=64m --direct=1"},
	{"read of 64 KiB, sequential, O_DIRECT", "--rw=read --bs=64k --size=64m --direct=1"},
	{"write of 4 KiB, random", "--rw=randwrite --bs=4k --size=64m --io_size=16m --randseed=7"},
	{"write of 4 KiB, random, fsync after each", "--rw=randwrite --bs=4k --size=64m --io_size=512k --fsync=1 --randseed=7"},
	{"write of 64 KiB, sequential, O_DIRECT, again", "--rw=write --bs=64k --size=64m --direct=1"},
	{"read of 4 KiB, random, O_DIRECT", "--rw=randread --bs=4k --size=64m --io_size=4m --direct=1 --randseed=7"},
}

// fioScript returns the commands that run jobs.
func fioScript(jobs []fioJob) string {
	var s strings.Builder
	s.WriteString("cd /data\n")
	for _, j := range jobs {
		fmt.Fprintf(&s, "/bin/fio --name='%s' --filename=/data/fio --ioengine=psync --thread --output-format=terse --terse-version=3 %s\n", j.name, j.options)
	}
	return s.String()
}

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

// mailRow returns the row of mailbench with files in a folder.
func mailRow(in string) string {
	if in == atDisk {
		return "mailbench: a message, with files on the disk"
	}
	return "mailbench: a message, with files in memory"
}

// parseMail returns a function that reads the line "N messages/sec" of mailbench.
func parseMail(in string) func(string, func(string, float64)) {
	row := mailRow(in)
	return func(output string, add func(string, float64)) {
		if *many {
			parseMicro(output, func(row string, ns float64) { add(row, ns/mailMessages) })
			return
		}
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
same disk: a new image of 768 MiB for each run, which mke2fs has made and QEMU stores in a file. Linux is Debian's cloud
kernel without mitigations, and mounts the disk with its default options. The cloud kernel has no driver for AHCI, so the rows with
an AHCI disk are those of Debian's general kernel (linux-image-amd64).

- **operation**: each row has one operation. The rows of cached names are the throughput of one process for each CPU. The disk is
  a virtio disk, or the one in parentheses.
- **Linux** and **Loam** are the %s.
- **Linux / Loam** is the first %s.
`
