// Command files measures small files in a folder, and the time of other commands. It is an ordinary static program of Linux, and
// prints one line of JSON for each row: its name, and the nanoseconds of one operation. Package test/processes runs it on Loam and
// on Linux.
//
//	files small FOLDER COUNT SYNCED     create, lstat, read, rename and remove COUNT files of 1 KiB, and create SYNCED files with fsync
//	files time NAME COMMAND...          run a command once
//	files folders PATH...               create folders
//	files nothing                       end at once
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "files:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 4 && args[0] == "small":
		return small(args[1], args[2], args[3])
	case len(args) > 2 && args[0] == "time":
		start := time.Now()
		out, err := exec.Command(args[2], args[3:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", args[2], err, out)
		}
		report(args[1], time.Since(start), 1)
		return nil
	case len(args) > 1 && args[0] == "folders":
		for _, path := range args[1:] {
			if err := os.MkdirAll(path, 0o777); err != nil {
				return err
			}
		}
		return nil
	case len(args) == 1 && args[0] == "nothing":
		return nil
	}
	return fmt.Errorf("arguments %q", args)
}

func report(name string, took time.Duration, operations int) {
	line, _ := json.Marshal(struct {
		Name string
		NS   float64
	}{name, float64(took.Nanoseconds()) / float64(operations)})
	fmt.Println(string(line))
}

const (
	size      = 1024
	perFolder = 100
)

func small(folder, count, synced string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	durable, err := strconv.Atoi(synced)
	if err != nil {
		return err
	}
	t := tree{folder, n}
	for i := range (n + perFolder - 1) / perFolder {
		if err := os.MkdirAll(t.dir(i*perFolder), 0o755); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		name string
		do   func(i int) error
		n    int
	}{
		{"create a file of 1 KiB", func(i int) error { return write(t.file(i), false) }, n},
		{"lstat of a file", func(i int) error { _, err := os.Lstat(t.file(i)); return err }, n},
		{"lstat of a name that does not exist", func(i int) error { return t.missing(i) }, n},
		{"open, read and close of a file", func(i int) error { _, err := os.ReadFile(t.file(i)); return err }, n},
		{"rename of a file", func(i int) error { return os.Rename(t.file(i), t.file(i)+"~") }, n},
		{"remove a file", func(i int) error { return os.Remove(t.file(i) + "~") }, n},
		{"create a file of 1 KiB, with fsync", func(i int) error { return write(t.file(i), true) }, durable},
	} {
		start := time.Now()
		for i := range step.n {
			if err := step.do(i); err != nil {
				return err
			}
		}
		report(step.name, time.Since(start), step.n)
	}
	return os.RemoveAll(folder)
}

type tree struct {
	root  string
	files int
}

func (t *tree) dir(i int) string  { return fmt.Sprintf("%s/d%02d", t.root, i/perFolder) }
func (t *tree) file(i int) string { return filepath.Join(t.dir(i), fmt.Sprintf("f%05d", i)) }

// missing looks for a name that does not exist.
func (t *tree) missing(i int) error {
	if _, err := os.Lstat(t.file(i) + ".missing"); !os.IsNotExist(err) {
		return fmt.Errorf("lstat of a name that does not exist: %v", err)
	}
	return nil
}

// write creates a file with content.
func write(name string, durable bool) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, size)); err != nil || !durable {
		return err
	}
	return f.Sync()
}
