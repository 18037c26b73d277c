//go:build !race

package unikernel

import (
	"bufio"
	"io"
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

// powerCuts is the environment variable with the number of times that TestSQLitePowerCut kills the machine;
// the default is 2.
const powerCuts = "LOAM_POWER_CUTS"

// SQLite in ring 3 inserts rows into a database on a disk, and the machine is killed at a random moment. Each time, the
// journal recovers, the database passes SQLite's own check, and it has every row that SQLite had reported.
func TestSQLitePowerCut(t *testing.T) {
	const sqlite = "/usr/bin/sqlite3"
	for _, program := range []string{sqlite, "/usr/sbin/mke2fs"} {
		if _, err := os.Stat(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	cuts := 2
	if n, err := strconv.Atoi(os.Getenv(powerCuts)); err == nil {
		cuts = n
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	image, reported := rootImage(t, sqlite), 0
	for cut := range cuts {
		reported = max(reported, insertUntilCut(t, image, rng))
		rows := checkDatabase(t, image)
		if rows < reported {
			t.Fatalf("cut %d: the database has %d rows, and %d were reported", cut, rows, reported)
		}
		t.Logf("cut %d: %d rows reported, %d there", cut, reported, rows)
	}
}

// insertUntilCut inserts rows and kills the machine after a random number of them. It returns the last row that was
// reported.
func insertUntilCut(t *testing.T, image string, rng *rand.Rand) (last int) {
	t.Helper()
	cmd := linuxCommand("/usr/bin/sqlite3", "/test.db")
	cmd.Env = append(cmd.Env, withFiles+"="+image)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	// With PRAGMA synchronous=FULL, SQLite does not sync the folder after it has removed its journal: a transaction
	// that was just reported may be rolled back after a power cut, on Linux as here
	// (https://sqlite.org/pragma.html#pragma_synchronous).
	go func() {
		io.WriteString(in, "PRAGMA synchronous=EXTRA; CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, text);\n")
		for {
			if _, err := io.WriteString(in, "INSERT INTO t(text) VALUES(hex(randomblob(2000))); SELECT max(id) FROM t;\n"); err != nil {
				return
			}
		}
	}()
	lines := bufio.NewScanner(out)
	for left := 1 + rng.IntN(40); left > 0 && lines.Scan(); left-- {
		if last, err = strconv.Atoi(strings.TrimSpace(lines.Text())); err != nil {
			t.Errorf("sqlite3 prints %q", lines.Text())
			break
		}
	}
	cmd.Process.Kill()
	for lines.Scan() { // rows that were reported before the machine ended
		if n, err := strconv.Atoi(strings.TrimSpace(lines.Text())); err == nil {
			last = n
		}
	}
	in.Close()
	cmd.Wait()
	if last == 0 {
		t.Fatal("sqlite3 has inserted nothing")
	}
	return last
}

// checkDatabase checks the image and the database in it, and returns its number of rows.
func checkDatabase(t *testing.T, image string) int {
	t.Helper()
	for { // waits until the killed machine has released its lock on the image
		f, err := imagefile.Check(image)
		if err != nil && strings.Contains(err.Error(), "in use") {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if err != nil || !f.OK() {
			t.Fatalf("the image: %v, %q", err, f.Problems)
		}
		break
	}
	dir := t.TempDir()
	i, err := imagefile.Open(image, false)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	for _, name := range []string{"/test.db", "/test.db-journal"} {
		if err := i.CopyOut(name, dir, nil); err != nil && name == "/test.db" {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("sqlite3", filepath.Join(dir, "test.db"), "PRAGMA integrity_check; SELECT count(*) FROM t;").CombinedOutput()
	result, count, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	rows, perr := strconv.Atoi(count)
	if err != nil || result != "ok" || perr != nil {
		t.Fatalf("sqlite3: %v: %s", err, out)
	}
	return rows
}
