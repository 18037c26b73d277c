package fstest

import (
	"testing"

	"loam/fs"
)

// Test judges the file systems that make returns, each new and empty, with a
// root directory of user 0 and mode 0755.
func Test(t *testing.T, make func(t *testing.T) fs.FileSystem) {
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			view := fs.NewView(fs.NewTree(make(t)))
			m := &machine{T: t, view: view, files: map[string]*fs.File{}}
			m.run(s.script)
		})
	}
	for name, test := range map[string]func(*testing.T, *fs.View){
		"many names":         manyNames,
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
