package ninep

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"loam/fs"
)

// cachedTree returns a file system without a server, whose root is known.
func cachedTree(names int) *FileSystem {
	s := &FileSystem{valid: time.Hour, mostCached: names, nodes: map[key]weak.Pointer[node]{}}
	s.valid = s.clock.set(s.valid)
	s.root = &node{s: s, kind: fs.Dir}
	s.root.self = weak.Make(s.root)
	return s
}

// listForTest makes subdirectories of d known, and returns them.
func (s *FileSystem) listForTest(d *node, names ...string) (all []*node) {
	c := s.cache(d)
	c.complete, c.until, c.dirs = true, s.deadline(), len(names)
	for _, name := range names {
		k := &known{name: name, until: s.deadline()}
		k.attr.Mode = fs.Dir
		k.attr.key.path = uint64(len(s.nodes) + 1)
		c.known[name] = k
		c.listing = append(c.listing, k)
		s.names++
		all = append(all, s.dirOf(d, k))
	}
	return all
}

func pathsOf(dirs []*node) string {
	var all []string
	for _, d := range dirs {
		all = append(all, d.dir.name+"/"+d.name)
	}
	return strings.Join(all, " ")
}

// Directories are listed in advance in the order of a walk that continues behind a directory. Listings are rings, known
// directories are left out, and so are directories that were removed.
func TestNextDirs(t *testing.T) {
	s := cachedTree(1000)
	top := s.listForTest(s.root, "a", "b", "c")
	under := s.listForTest(top[0], "1", "2", "3", "4")
	s.listForTest(top[1], "5", "6")
	s.listForTest(under[3])
	if got := pathsOf(s.nextDirs(under[1], 10)); got != "a/3 a/1 b/5 b/6 /c" {
		t.Errorf("behind a/2: %s", got)
	}
	if got := pathsOf(s.nextDirs(under[1], 3)); got != "a/3 a/1 b/5" {
		t.Errorf("three behind a/2: %s", got)
	}
	top[1].names.known["5"].absent = true
	if got := pathsOf(s.nextDirs(under[2], 10)); got != "a/1 a/2 b/6 /c" {
		t.Errorf("behind a/3: %s", got)
	}
}

// A program may list subdirectories in the order of the server or by name; this is learned from the first ones, and holds for the
// whole tree.
func TestOrderOfWalk(t *testing.T) {
	for _, c := range []struct{ first, second, want string }{
		{"1", "2", "a/3 a/4 b/5 b/6 b/7"}, // by name
		{"4", "2", "a/3 a/1 c/9 c/8 b/6"}, // in the order of the server
		{"4", "1", "a/2 a/3 b/5 b/6 b/7"}, // by name: the names are a ring
		{"1", "3", "a/4 a/2 c/9 c/8 b/6"}, // neither
	} {
		s := cachedTree(1000)
		top := s.listForTest(s.root, "c", "b", "a")
		s.listForTest(top[0], "9", "8")
		s.listForTest(top[1], "6", "5", "7")
		under := s.listForTest(top[2], "4", "2", "3", "1")
		at := map[string]*node{}
		for _, n := range under {
			at[n.name] = n
		}
		s.root.names.walked, top[2].names.walked = 1, 1
		for i, name := range []string{c.first, c.second} {
			top[2].names.walked += i
			top[2].names.follow(name)
			s.listForTest(at[name])
		}
		if got := pathsOf(s.nextDirs(at[c.second], 5)); got != c.want {
			t.Errorf("after %s and %s: %s, want %s", c.first, c.second, got, c.want)
		}
	}
}

// Two subdirectories are a ring in both orders, so they do not change the order that was learned in the directory above.
func TestOrderOfTwo(t *testing.T) {
	s := cachedTree(1000)
	top := s.listForTest(s.root, "b", "a")
	s.listForTest(top[0], "9", "8", "7")
	under := s.listForTest(top[1], "2", "1")
	s.root.names.walked, s.root.names.byName = 2, true
	c := top[1].names
	for i, d := range []*node{under[1], under[0]} {
		c.walked = i + 1
		c.follow(d.name)
		c.inherit(s.root.names)
		s.listForTest(d)
	}
	if got := pathsOf(s.nextDirs(under[0], 3)); got != "b/7 b/8 b/9" {
		t.Errorf("%s, want b/7 b/8 b/9", got)
	}
}

// Room for names is made by dropping the directories that were filled first, except those in which the program walks.
func TestRecycle(t *testing.T) {
	const most = 800
	s := cachedTree(most)
	top := s.listForTest(s.root, "a", "b")
	s.root.names.walked = 2
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprint(i))
	}
	under := s.listForTest(top[0], names...)
	for _, d := range under[:8] {
		var files []string
		for i := range most / 8 {
			files = append(files, fmt.Sprint(i))
		}
		s.listForTest(d, files...)
	}
	s.recycle(top[0])
	if s.names > most*3/4 {
		t.Errorf("%d names are left", s.names)
	}
	var left []bool
	for _, d := range append([]*node{s.root, top[0]}, under[:8]...) {
		left = append(left, d.names != nil)
	}
	if want := []bool{true, true, false, false, false, true, true, true, true, true}; !slices.Equal(left, want) {
		t.Errorf("cached are %v, want %v", left, want)
	}
	before := s.names
	s.recycle(top[0])
	if s.names != before {
		t.Error("names are dropped although there is room")
	}
}
