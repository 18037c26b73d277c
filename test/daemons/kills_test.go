//go:build linux && !race

package daemons

import (
	"bufio"
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"loam/fs/imagefile"
)

var kills = flag.Int("kills", 0, "how often each database's machine is killed; 0: never")

// databases are the names of scripts that start a database on the machine's disk, check its content, print it as
// "state N", and then change it until they are killed. Each durable change is printed as a number, larger than the
// one before.
var databases = []string{"redis", "postgresql"}

// dataDisk is the size of the disk of a database. A small disk is checked quickly.
const dataDisk = "256M"

// A database in a machine that is killed at random moments keeps what it has reported: the next machine recovers the
// file system, and the database in it. e2fsck finds no fault after each kill. A fifth of the kills come while the machine
// starts and recovers.
func TestKills(t *testing.T) {
	if *kills == 0 {
		t.Skip("-kills is not given")
	}
	loam, original := buildLoam(t), image(t)
	for _, name := range databases {
		t.Run(name, func(t *testing.T) {
			dir, seed := t.TempDir(), uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			d := &database{name: name, loam: loam, root: filepath.Join(dir, "root.ext4"), disk: filepath.Join(dir, "data.ext4"), rng: rand.New(rand.NewPCG(seed, 0))}
			copyImage(t, original, d.root)
			if out, err := exec.Command("/usr/sbin/mke2fs", "-q", "-t", "ext4", d.disk, dataDisk).CombinedOutput(); err != nil {
				t.Fatalf("mke2fs: %v\n%s", err, out)
			}
			for kill := range *kills {
				if kill > 1 && d.rng.IntN(5) == 0 {
					after := d.killedEarly(t)
					t.Logf("kill %d: %v after the start of the machine", kill+1, after)
				} else {
					state := d.killedInUse(t)
					t.Logf("kill %d: %d at the start, %d reported", kill+1, state, d.reported)
				}
				fsck(t, d.disk)
			}
			fsck(t, d.root)
		})
	}
}

// database is a database whose machine is killed again and again. The root and the data of the machine are two disks.
type database struct {
	name             string
	loam, root, disk string // paths of the loam command and of the images
	rng              *rand.Rand

	reported int           // number of the last durable change that was printed
	starts   time.Duration // time from the last start of the machine to the line "state N"
}

// start starts the machine.
func (d *database) start(t *testing.T) (cmd *exec.Cmd, lines *bufio.Scanner, complaints *bytes.Buffer) {
	t.Helper()
	cmd = exec.Command(d.loam, "run", "--platform", "vm", "--net", "none", "--root", d.root, "--disk", d.disk+":/srv", "-m", "512M",
		"--cpus", strconv.Itoa(*cpus), "-v", scriptFolder(t)+":/scripts", "/bin/bash", "--", "/scripts/kills-"+d.name+".sh", "0")
	complaints = new(bytes.Buffer)
	cmd.Stderr = complaints
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines = bufio.NewScanner(out)
	lines.Split(wholeLines)
	return cmd, lines, complaints
}

// wholeLines is bufio.ScanLines without the rest after the last newline, which the kill has cut off.
func wholeLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if advance, line, err = bufio.ScanLines(data, false); advance == 0 && atEOF {
		advance = len(data)
	}
	return advance, line, err
}

// killedEarly kills the machine while it starts and the database recovers, and returns the time until the kill.
func (d *database) killedEarly(t *testing.T) time.Duration {
	t.Helper()
	after := time.Duration(d.rng.Int64N(int64(d.starts)))
	cmd, lines, _ := d.start(t)
	defer cmd.Wait()
	time.Sleep(after)
	cmd.Process.Kill()
	for lines.Scan() {
		d.read(t, lines.Text())
	}
	return after
}

// killedInUse kills the machine after a random number of reports, and returns the number N of the line "state N".
func (d *database) killedInUse(t *testing.T) (state int) {
	t.Helper()
	began := time.Now()
	cmd, lines, complaints := d.start(t)
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var all []string
	state = -1
	before := d.reported
	for left := 1 + d.rng.IntN(100); left > 0 && lines.Scan(); {
		all = append(all, lines.Text())
		described, report := d.read(t, lines.Text())
		if described >= 0 {
			state, d.starts = described, time.Since(began)
		}
		if report {
			left--
		}
	}
	if state < 0 || d.reported == before {
		t.Fatalf("the database does not work:\n%s\n%s", strings.Join(all, "\n"), complaints.String())
	}
	// The kill may come at any time between two reports.
	time.Sleep(time.Duration(d.rng.IntN(100)) * time.Millisecond)
	cmd.Process.Kill()
	for lines.Scan() { // reports that were printed before the kill
		d.read(t, lines.Text())
	}
	return state
}

// read evaluates a line that the machine has printed. It returns the number N of the line "state N", or -1 for other lines, and
// whether the line reports a durable change. The test ends if the database has lost a reported change.
func (d *database) read(t *testing.T, line string) (state int, report bool) {
	t.Helper()
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "FAIL") {
		t.Fatal(line)
	}
	if found, ok := strings.CutPrefix(line, "state "); ok {
		n, err := strconv.Atoi(found)
		if err != nil || n < d.reported {
			t.Fatalf("the state is %q, and %d was reported", found, d.reported)
		}
		return n, false
	}
	n, err := strconv.Atoi(line)
	if err != nil {
		return -1, false
	}
	d.reported = n
	return -1, true
}

// fsck checks a disk image whose virtual machine was killed. Loam recovers and checks the image, and e2fsck recovers and checks
// a copy of it.
func fsck(t *testing.T, root string) {
	t.Helper()
	for { // repeated until the killed machine has released the image
		f, err := imagefile.Check(root)
		if err != nil && strings.Contains(err.Error(), "in use") {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err != nil || !f.OK() {
			t.Fatalf("the image: %v, %q", err, f.Problems)
		}
		break
	}
	judged := root + ".judged"
	defer os.Remove(judged)
	copyImage(t, root, judged)
	out, err := exec.Command("/usr/sbin/e2fsck", "-p", judged).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() > 1 || err != nil && !ok {
		t.Fatalf("e2fsck -p: %v\n%s", err, out)
	}
	if out, err := exec.Command("/usr/sbin/e2fsck", "-fn", judged).CombinedOutput(); err != nil {
		t.Fatalf("e2fsck -fn: %v\n%s", err, out)
	}
}

// copyImage copies an image, and leaves its holes.
func copyImage(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "--sparse=always", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
}
