package ext4_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4"
)

// attributes returns the attributes of all files below a directory by path.
func attributes(t *testing.T, v *fs.View, path string, all map[string]fs.Attr) map[string]fs.Attr {
	t.Helper()
	p, err := v.Lookup(v.Root, path, false)
	must(t, err)
	all[path] = p.Node.Attr()
	dir, ok := p.Node.(fs.Directory)
	if !ok {
		return all
	}
	var names []string
	must(t, dir.Read(0, func(e fs.Entry) bool { names = append(names, e.Name); return true }))
	for _, name := range names {
		attributes(t, v, strings.TrimSuffix(path, "/")+"/"+name, all)
	}
	return all
}

// sameFiles compares the attributes of all files with earlier ones.
func sameFiles(t *testing.T, what string, got, want map[string]fs.Attr) {
	t.Helper()
	for path := range want {
		if got[path] != want[path] {
			t.Errorf("%s: %s: %+v, want %+v", what, path, got[path], want[path])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d files, want %d", what, len(got), len(want))
	}
}

// An op that fails after its first changes leaves nothing changed, also in blocks that the running transaction has changed.
func TestFailedOpsChangeNothing(t *testing.T) {
	for _, args := range []string{"-b 1024", "-b 4096 -O ^metadata_csum,^has_journal"} {
		d := loadImage(t, makeImage(t, "16M", strings.Fields(args)...))
		s := mount(t, d, ext4.Config{Interval: time.Hour})
		v := newView(s)
		must(t, v.Mkdir(v.Root, "/a", 0o755))
		must(t, v.Mkdir(v.Root, "/b", 0o755))
		for i := range 60 { // more than one block of the directory
			writeFile(t, v, fmt.Sprintf("/b/a-file-with-a-long-name-%d", i), "x")
		}
		must(t, v.Mkdir(v.Root, "/a/b", 0o755))
		before := attributes(t, v, "/", map[string]fs.Attr{})
		usage := s.Usage()
		for range 3 { // with names in the cache, and without
			if err := v.Rename(v.Root, "/a/b", v.Root, "/b", 0); err != linux.ENOTEMPTY {
				t.Errorf("rename to a directory that is not empty: %v", err)
			}
			if err := v.Rmdir(v.Root, "/b"); err != linux.ENOTEMPTY {
				t.Errorf("rmdir of a directory that is not empty: %v", err)
			}
			sameFiles(t, "after errors", attributes(t, v, "/", map[string]fs.Attr{}), before)
		}
		if s.Usage() != usage {
			t.Errorf("%+v, want %+v", s.Usage(), usage)
		}
		must(t, s.Close())
		check(t, d)
		s = mount(t, d, ext4.Config{})
		sameFiles(t, "opened again", attributes(t, newView(s), "/", map[string]fs.Attr{}), before)
		must(t, s.Close())
	}
}

// After random changes, all names and attributes are the same from the caches and from the disk.
func TestRandomChanges(t *testing.T) {
	d := loadImage(t, makeImage(t, "16M", "-b", "1024"))
	rnd := rand.New(rand.NewPCG(5, 6))
	path := func() string {
		if n := rnd.IntN(12); n > 0 {
			return fmt.Sprintf("/d%d/f%d", rnd.IntN(3), n)
		}
		return fmt.Sprintf("/d%d", rnd.IntN(3))
	}
	for range 8 {
		s := mount(t, d, ext4.Config{Interval: time.Hour})
		v := newView(s)
		for range 250 {
			change(t, v, rnd, path)
		}
		must(t, s.Sync())
		cached := attributes(t, v, "/", map[string]fs.Attr{})
		must(t, s.Close())
		check(t, d)
		s = mount(t, d, ext4.Config{})
		sameFiles(t, "opened again", cached, attributes(t, newView(s), "/", map[string]fs.Attr{}))
		must(t, s.Close())
	}
}

// change makes a random change. It may fail, because a name exists or does not exist.
func change(t *testing.T, v *fs.View, rnd *rand.Rand, path func() string) {
	a, b := path(), path()
	var err error
	switch rnd.IntN(12) {
	case 0:
		err = v.Mkdir(v.Root, a, 0o755)
	case 1, 2, 3:
		var f *fs.File
		if f, err = v.Open(v.Root, a, fs.WriteOnly|fs.Create, 0o644); err == nil {
			_, err = f.WriteAt(make([]byte, rnd.IntN(5000)), int64(rnd.IntN(5000)))
			must(t, f.Close())
		}
	case 4:
		err = v.Rename(v.Root, a, v.Root, b, 0)
	case 5:
		err = v.Rename(v.Root, a, v.Root, b, fs.RenameExchange)
	case 6:
		err = v.Unlink(v.Root, a)
	case 7:
		err = v.Symlink(strings.Repeat("x", 1+rnd.IntN(100)), v.Root, a)
	case 8:
		if err = v.Rmdir(v.Root, a); err == nil {
			err = v.Mkdir(v.Root, a, 0o700)
		}
	default:
		var p fs.Place
		if p, err = v.Lookup(v.Root, a, false); err != nil {
			break
		}
		c := fs.Change{Fields: fs.SetMode | fs.SetModify, Mode: fs.Mode(rnd.IntN(0o1000)), Modify: fs.Time(rnd.Int64N(1e18))}
		switch rnd.IntN(4) {
		case 0:
			err = v.Link(p, v.Root, b)
		case 1:
			err = v.SetXattr(p, "user.x", make([]byte, rnd.IntN(200)), 0)
		case 2:
			c = fs.Change{Fields: fs.SetSize, Size: int64(rnd.IntN(9000))}
			fallthrough
		default:
			err = v.Change(p, c)
		}
	}
	var number linux.Errno
	if err != nil && !errors.As(err, &number) {
		t.Error(err)
	}
	v.Lookup(v.Root, b, false)
}

// A file whose attributes are known is opened without the lock of the file system: also while an op holds it that removes the name. The
// open file keeps its content.
func TestOpenTakesNoLock(t *testing.T) {
	d := loadImage(t, makeImage(t, "16M"))
	var inside atomic.Pointer[func()] // called once, during an op
	s := mount(t, d, ext4.Config{Interval: time.Hour, Now: func() time.Time {
		if f := inside.Swap(nil); f != nil {
			(*f)()
		}
		return time.Now()
	}})
	v := newView(s)
	writeFile(t, v, "/f", "content")
	p, err := v.Lookup(v.Root, "/f", true)
	must(t, err)
	p.Node.Attr() // adds the attributes to the cache
	free := s.Usage()
	opened := make(chan *fs.File, 1)
	open := func() {
		ended := make(chan struct{}) // closed when the file was opened
		go func() {
			defer close(ended)
			f, err := v.OpenPlace(p, fs.ReadOnly)
			if err != nil {
				t.Error(err)
				return
			}
			opened <- f
		}()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("open waits for the removal")
		}
	}
	inside.Store(&open)
	must(t, v.Unlink(v.Root, "/f"))
	f := <-opened
	got := make([]byte, 10)
	if n, err := f.ReadAt(got, 0); err != nil || string(got[:n]) != "content" {
		t.Errorf("read %q, %v", got[:n], err)
	}
	must(t, f.Close())
	must(t, s.Sync())
	if now := s.Usage(); now.FilesFree != free.FilesFree+1 {
		t.Errorf("%d files are free, want %d", now.FilesFree, free.FilesFree+1)
	}
	must(t, s.Close())
	check(t, d)
}

// A file that was opened keeps its content until it is closed, while its name is removed at the same time.
func TestOpenWhileUnlinked(t *testing.T) {
	d := loadImage(t, makeImage(t, "16M"))
	s := mount(t, d, ext4.Config{Interval: time.Hour})
	v := newView(s)
	free := s.Usage()
	var workers sync.WaitGroup
	done := make(chan struct{}) // closed when the writer ends
	var opened atomic.Int32
	workers.Go(func() {
		defer close(done)
		for range 1500 {
			writeFile(t, v, "/f", "content")
			if err := v.Unlink(v.Root, "/f"); err != nil {
				t.Error(err)
			}
		}
	})
	for range 3 {
		workers.Go(func() {
			p := make([]byte, 7)
			for {
				select {
				case <-done:
					return
				default:
				}
				f, err := v.Open(v.Root, "/f", fs.ReadOnly, 0)
				if err != nil {
					continue
				}
				opened.Add(1)
				if n, err := f.ReadAt(p, 0); err != nil || n != 0 && string(p[:n]) != "content" {
					t.Errorf("read %q, %v", p[:n], err)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	must(t, s.Sync())
	if s.Usage() != free {
		t.Errorf("%+v, want %+v", s.Usage(), free)
	}
	t.Logf("opened %d times", opened.Load())
	must(t, s.Close())
	check(t, d)
}

// A write to a cached block changes its image in place, if no commit is writing it.
func TestOverwritesDoNotCopy(t *testing.T) {
	s := mount(t, loadImage(t, makeImage(t, "16M", "-b", "4096")), ext4.Config{Interval: time.Hour})
	defer s.Close()
	v := newView(s)
	f, err := v.Open(v.Root, "/f", fs.ReadWrite|fs.Create, 0o644)
	must(t, err)
	defer f.Close()
	p := make([]byte, 4096)
	for _, size := range []int{100, len(p)} {
		write := func() {
			if _, err := f.WriteAt(p[:size], 0); err != nil {
				t.Error(err)
			}
		}
		if n := testing.AllocsPerRun(100, write); n > 1 {
			t.Errorf("a write of %d bytes makes %v allocations", size, n)
		}
	}
}
