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

// A database in a machine that is killed at random moments keeps what it has reported: the next machine recovers the
// file system, and the database in it. e2fsck finds no fault after each kill.
func TestKills(t *testing.T) {
	if *kills == 0 {
		t.Skip("-kills is not given")
	}
	loam, original := buildLoam(t), image(t)
	for _, name := range databases {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "root.ext4")
			copyImage(t, original, root)
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			reported := 0
			for kill := range *kills {
				var state int
				state, reported = untilKilled(t, loam, root, name, reported, rng)
				t.Logf("kill %d: %d at the start, %d reported", kill, state, reported)
				fsck(t, root)
			}
		})
	}
}

// untilKilled runs a database, and kills its machine after a random number of reports. It returns the number N of the
// line "state N", which describes the database at the start, and the number of the last report.
func untilKilled(t *testing.T, loam, root, name string, before int, rng *rand.Rand) (state, reported int) {
	t.Helper()
	cmd := exec.Command(loam, "run", "--platform", "vm", "--net", "none", "--root", root, "-m", "1G", "--cpus", strconv.Itoa(*cpus),
		"-v", scriptFolder(t)+":/scripts", "/bin/bash", "--", "/scripts/kills-"+name+".sh", "0")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var all []string
	state, reported = -1, before
	lines := bufio.NewScanner(out)
	for left := 1 + rng.IntN(400); left > 0 && lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		all = append(all, line)
		if found, ok := strings.CutPrefix(line, "state "); ok {
			if state, err = strconv.Atoi(found); err != nil || state < before {
				t.Fatalf("the state is %q, and %d was reported", found, before)
			}
		}
		if n, err := strconv.Atoi(line); err == nil {
			reported = n
			left--
		}
		if strings.HasPrefix(line, "FAIL") {
			t.Fatal(line)
		}
	}
	if state < 0 || reported == before {
		t.Fatalf("the database does not work:\n%s\n%s", strings.Join(all, "\n"), complaints.String())
	}
	// The kill may come at any time between two reports.
	time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
	cmd.Process.Kill()
	for lines.Scan() { // reports that were printed before the kill
		if n, err := strconv.Atoi(strings.TrimSpace(lines.Text())); err == nil {
			reported = n
		}
	}
	return state, reported
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
