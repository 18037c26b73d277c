// Command tree creates, walks, reads and removes a tree of small files, and prints the time and the CPU time that each phase
// takes, in nanoseconds. Package test/folders runs it on Linux and on Loam.
//
//	tree PHASE[,PHASE]... FOLDER FILES BYTES
//
// A PHASE is create, stat, walk, read, remove or round.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// perFolder is the number of files, and of folders, in a folder.
const perFolder = 100

func main() {
	files, err := strconv.Atoi(os.Args[3])
	check(err)
	size, err := strconv.Atoi(os.Args[4])
	check(err)
	t := tree{os.Args[2], files, size}
	work := map[string]func() int{
		"create": t.create, "stat": t.stat, "walk": t.walk, "read": t.read, "remove": t.remove, "round": t.round,
	}
	check(os.MkdirAll(t.root, 0o755))
	for phase := range strings.SplitSeq(os.Args[1], ",") {
		start, before := time.Now(), cpu()
		n := work[phase]()
		took, used := time.Since(start), cpu()-before
		if n != files {
			fmt.Fprintf(os.Stderr, "%s: %d files, want %d\n", phase, n, files)
			os.Exit(1)
		}
		fmt.Println(took.Nanoseconds(), used)
	}
}

// cpu returns the CPU time of this process in nanoseconds.
func cpu() int64 {
	var r syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return r.Utime.Nano() + r.Stime.Nano()
}

type tree struct {
	root  string
	files int
	size  int
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (t *tree) folder(i int) string {
	return fmt.Sprintf("%s/f%d/f%03d", t.root, i/perFolder/20, i/perFolder)
}
func (t *tree) file(i int) string { return fmt.Sprintf("%s/file%05d.txt", t.folder(i), i) }

// create creates the folders and the files, as `git checkout` and tar do.
func (t *tree) create() int {
	content := make([]byte, t.size)
	for i := range t.files {
		if i%perFolder == 0 {
			check(os.MkdirAll(t.folder(i), 0o755))
		}
		check(os.WriteFile(t.file(i), content, 0o644))
	}
	return t.files
}

// stat makes the calls of `git status` in a clean tree: it reads the attributes of each file in the order of the names,
// and then lists all folders to find further files.
func (t *tree) stat() int {
	for i := range t.files {
		_, err := os.Lstat(t.file(i))
		check(err)
	}
	n := 0
	check(filepath.WalkDir(t.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	}))
	return n
}

// walk lists the tree with all attributes, as `find -ls` does.
func (t *tree) walk() int {
	n := 0
	check(filepath.Walk(t.root, func(path string, st os.FileInfo, err error) error {
		if err == nil && !st.IsDir() {
			n++
		}
		return err
	}))
	return n
}

// read lists the tree and reads all files, as `grep -r` does.
func (t *tree) read() int {
	n := 0
	check(filepath.WalkDir(t.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && len(b) == t.size {
			n++
		}
		return err
	}))
	return n
}

// remove removes the tree.
func (t *tree) remove() int {
	all, err := os.ReadDir(t.root)
	check(err)
	for _, e := range all {
		check(os.RemoveAll(filepath.Join(t.root, e.Name())))
	}
	return t.files
}

// round makes a call that nothing caches, once for each file. On Loam that is one message and its reply.
func (t *tree) round() int {
	var st syscall.Statfs_t
	for range t.files {
		check(syscall.Statfs(t.root, &st))
	}
	return t.files
}
