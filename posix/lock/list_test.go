package lock

import (
	"slices"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/posix/file"
)

// openFile is an open file that counts how often it is asked for its place.
type openFile struct {
	place fs.Place
	asked int
}

func (f *openFile) Place() fs.Place {
	f.asked++
	return f.place
}

// The list asks no file for its attributes. When a file is closed, all locks that were set by it end, also those of other processes.
func TestListOfClosedFiles(t *testing.T) {
	var l Files
	tree := fs.NewTree(memfs.New(memfs.Config{}))
	f, other := &openFile{place: tree.Root()}, &openFile{place: tree.Root()}
	node := f.place.Node
	take := func(table *Table, want Lock) {
		t.Helper()
		if errno := table.Take(node, want, false, false, file.Task{}); errno != 0 {
			t.Fatal(errno)
		}
	}
	take(&l.Flocks, Lock{Owner: f, File: f, PID: 5})
	take(&l.Ranges, Lock{Owner: "process", File: f, PID: 5, Last: 9, Write: true})
	take(&l.Ranges, Lock{Owner: "another", File: f, PID: 6, First: 10, Last: 19, Write: true})
	take(&l.Ranges, Lock{Owner: "another", File: other, PID: 6, First: 30, Last: 39})
	if errno := l.Leases.Set(tree, node, Lock{Owner: f, File: f, PID: 5}, linux.F_RDLCK, func() {}); errno != 0 {
		t.Fatal(errno)
	}
	const last = "POSIX  ADVISORY  READ 6 00:01:1 30 39\n"
	const want = "1: LEASE  ACTIVE    READ 5 00:01:1 0 0\n2: " + last + "3: POSIX  ADVISORY  WRITE 6 00:01:1 10 19\n" +
		"4: POSIX  ADVISORY  WRITE 5 00:01:1 0 9\n5: FLOCK  ADVISORY  READ 5 00:01:1 0 0\n"
	before := f.asked + other.asked
	if got := l.Text(); got != want || f.asked+other.asked != before {
		t.Errorf("%d questions, the list is:\n%swant:\n%s", f.asked+other.asked-before, got, want)
	}
	l.Release(tree, f)
	if got := l.Text(); got != "1: "+last || l.Flocks.Len() != 0 || l.Ranges.Len() != 1 {
		t.Errorf("after the close: %s", got)
	}
	l.Release(tree, other)
	if got := l.Text(); got != "" || l.Ranges.Len() != 0 || len(l.Ranges.locks) != 0 {
		t.Errorf("after both are closed: %s", got)
	}
}

// A long chain of requests has a short list, and a long list ends after a limit.
func TestLongList(t *testing.T) {
	const requests = 2000
	var l Files
	node := fs.NewTree(memfs.New(memfs.Config{})).Root().Node
	l.Flocks.Take(node, Whole(-1, true), false, false, file.Task{})
	for i := range requests {
		l.Flocks.enqueue(node, Whole(i, true))
	}
	text := l.Text()
	lines := strings.Split(text, "\n")
	const arrow = "-> FLOCK  ADVISORY  WRITE 0 <none>:0 0 EOF"
	if len(lines) != requests+2 || lines[2] != "1:  "+arrow || lines[requests] != "1: "+strings.Repeat(" ", 49)+arrow || len(text) > requests*120 {
		t.Errorf("%d lines, %d bytes: %q, ..., %q", len(lines), len(text), lines[2], lines[requests])
	}
	l.Ranges.locks = map[fs.Node][]Lock{node: slices.Repeat([]Lock{{Owner: 1}}, 100000)}
	if n := len(l.Text()); n < 1<<20 || n > 1<<20+100 {
		t.Errorf("the list of many locks has %d bytes", n)
	}
}

// The locks of an open file are found without a look at other files and at requests that wait.
func TestHeld(t *testing.T) {
	var l Files
	tree := fs.NewTree(memfs.New(memfs.Config{}))
	f := &openFile{place: tree.Root()}
	node := f.place.Node
	l.Flocks.Take(node, Lock{Owner: f, File: f, PID: 5, Write: true}, false, false, file.Task{})
	l.Ranges.Take(node, Lock{Owner: "process", File: f, PID: 5, Last: 9}, false, false, file.Task{})
	l.Ranges.Take(node, Lock{Owner: "another", File: f, PID: 6, Last: 9}, false, false, file.Task{})
	l.Leases.Set(tree, node, Lock{Owner: f, File: f, PID: 5}, linux.F_RDLCK, func() {})
	for i := range 1000 {
		l.Flocks.enqueue(node, Whole(i, true))
		l.Ranges.locks[fs.NewTree(memfs.New(memfs.Config{})).Root().Node] = []Lock{{Owner: "process"}}
	}
	const want = "lock:\t1: FLOCK  ADVISORY  WRITE 5 00:01:1 0 0\nlock:\t2: POSIX  ADVISORY  READ 5 00:01:1 0 9\n" +
		"lock:\t3: LEASE  ACTIVE    READ 5 00:01:1 0 0\n"
	if got := l.Held(f, "process"); got != want {
		t.Errorf("the locks are:\n%swant:\n%s", got, want)
	}
	if n := testing.AllocsPerRun(10, func() { l.Held(f, "process") }); n > 100 {
		t.Errorf("%v allocations", n)
	}
}
