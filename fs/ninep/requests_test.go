package ninep_test

import (
	"fmt"
	"runtime/debug"
	"testing"

	"loam/fs"
	"loam/fs/ninep"
	"loam/fs/ninep/server"
	"time"
)

// The FIDs of files whose name was removed do not use up the FIDs of the server, although the collector does not run by itself.
func TestKeptFIDs(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	s := export(t, folder(t), ninep.Config{}, server.Config{FIDs: 40})
	v := view(s)
	for i := range 200 {
		a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
		write(t, v, a, "content", 0)
		old, err := v.Lookup(v.Dir, a, false)
		must(t, err)
		must(t, v.Link(old, v.Dir, b))
		must(t, v.Unlink(v.Dir, a))
	}
}

// walk lists a tree and calls visit for each file, as filepath.WalkDir with os.Lstat does.
func walk(t testing.TB, v *fs.View, path string, visit func(path string)) (n int) {
	d, err := v.Open(v.Dir, path, fs.ReadOnly|fs.MustBeDir, 0)
	must(t, err)
	var entries []fs.Entry
	must(t, d.ReadDir(func(e fs.Entry) bool { entries = append(entries, e); return true }))
	must(t, d.Close())
	for _, e := range entries {
		if e.Name == "." || e.Name == ".." {
			continue
		}
		n++
		sub := path + "/" + e.Name
		p, err := v.Lookup(v.Dir, sub, false)
		must(t, err)
		if a := p.Node.Attr(); a.Links == 0 {
			t.Fatalf("%s has gone", sub)
		}
		if e.Type == fs.Dir {
			n += walk(t, v, sub, visit)
		} else if visit != nil {
			visit(sub)
		}
	}
	return n
}

// A tree of directories with 100 files each takes few round trips to the server in cache mode Loose: the client
// requests the next names and attributes in advance.
func TestRounds(t *testing.T) {
	const dirs, files = 20, 100
	s := export(t, folder(t), ninep.Config{Valid: time.Hour}, server.Config{})
	v := view(s)
	phase := func(what string, most float64, per int, f func()) {
		before := s.Rounds()
		f()
		n := float64(s.Rounds()-before) / float64(per)
		t.Logf("%s: %.2f rounds, of at most %.2f", what, n, most)
		if n > most {
			t.Errorf("%s: %.2f rounds, want at most %.2f", what, n, most)
		}
	}
	all := dirs * files
	phase("to create a file and write to it", 2.1, all, func() {
		for d := range dirs {
			must(t, v.Mkdir(v.Dir, fmt.Sprint(d), 0o755))
			for f := range files {
				write(t, v, fmt.Sprint(d, "/", f), "content", 0)
			}
		}
	})
	fresh := func() {
		s = export(t, hostOf[s], ninep.Config{Valid: time.Hour}, server.Config{})
		v = view(s)
	}
	fresh()
	phase("to walk a directory of 100 files", 3.5, dirs, func() {
		if n := walk(t, v, ".", nil); n != all+dirs {
			t.Errorf("%d files", n)
		}
	})
	phase("to walk it again", 0, dirs, func() { walk(t, v, ".", nil) })
	fresh()
	phase("to walk a directory of 100 files and read them", 8, dirs, func() {
		walk(t, v, ".", func(p string) { content(t, v, p) })
	})
	phase("to remove a file", 1.1, all, func() {
		for d := range dirs {
			for f := range files {
				must(t, v.Unlink(v.Dir, fmt.Sprint(d, "/", f)))
			}
			must(t, v.Rmdir(v.Dir, fmt.Sprint(d)))
		}
	})
}
