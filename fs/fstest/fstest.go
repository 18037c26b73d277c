package fstest

import (
	"testing"

	"loam/fs"
)

// Test runs the suite. The function make returns a new, empty file system whose root
// directory belongs to user 0 and has mode 0755.
func Test(t *testing.T, make func(t *testing.T) fs.FileSystem) { TestNames(t, 100_000, make) }

// TestNames runs the suite with the given number of names in the largest directory, which may be small if every call is slow.
func TestNames(t *testing.T, names int, make func(t *testing.T) fs.FileSystem) {
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			view := fs.NewView(fs.NewTree(make(t)))
			m := &machine{T: t, view: view, files: map[string]*fs.File{}}
			m.run(s.script)
		})
	}
	for name, test := range map[string]func(*testing.T, *fs.View){
		"many names":         func(t *testing.T, v *fs.View) { ManyNames(t, v, names) },
		"listing in motion":  listingInMotion,
		"holes":              holes,
		"concurrent appends": concurrentAppends,
		"concurrent renames": concurrentRenames,
		"unlinked but open":  unlinkedButOpen,
		"times":              times,
		"io/fs":              ioFS,
		"as Linux does":      asLinux,
	} {
		t.Run(name, func(t *testing.T) { test(t, fs.NewView(fs.NewTree(make(t)))) })
	}
}
