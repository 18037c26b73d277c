package unikernel

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"loam/unikernel/filled"
	"loam/unikernel/overlay"
)

// An index records which std folder of the cache belongs to a toolchain. With it, a run neither edits the standard
// library nor reads Loam's embedded packages again, which is most of the time that Loam itself needs before a program
// starts. The index is valid for one build of this executable, because the edit rules and the embedded packages are
// compiled into it. It records the size and modification time of every file of the toolchain that the rules read.

// stdIndex is the content of an index file.
type stdIndex struct {
	Hash   string            // name of the std folder in the cache
	Names  []string          // names of the files that the overlay replaces or adds, below GOROOT/src
	Stamps map[string]string // stamp of each file that the rules read, by its name below GOROOT/src
}

// stamp returns the size and modification time of a file, or an empty string if the file does not exist.
func stamp(path string) string {
	st, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(st.Size(), " ", st.ModTime().UnixNano())
}

// buildID returns the build ID that the go command has stored in an executable, a text that depends on the content of
// all its packages. It is empty if the executable was linked without one.
func buildID(executable string) string {
	f, err := elf.Open(executable)
	if err != nil {
		return ""
	}
	defer f.Close()
	note := f.Section(".note.go.buildid")
	if note == nil {
		return ""
	}
	const header = 16 // the note's two sizes, its type, and the name "Go"
	b, err := note.Data()
	if err != nil || len(b) <= header {
		return ""
	}
	return string(b[header:])
}

// indexPath returns the path of the index for a toolchain. It is empty if no index can be used.
func indexPath(c cache, t *toolchain, platform Platform) string {
	id := buildID("/proc/self/exe")
	if id == "" {
		return ""
	}
	return c.path("index", digest(id, layout, t.GOROOT, t.GOVERSION, platform.String()))
}

// readIndex returns the std folder that an index names, or nil if the index is missing or outdated.
func readIndex(c cache, t *toolchain, path string) *std {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var x stdIndex
	if json.Unmarshal(text, &x) != nil {
		return nil
	}
	for name, old := range x.Stamps {
		if stamp(filepath.Join(t.GOROOT, "src", name)) != old {
			return nil
		}
	}
	dir := c.path("std", x.Hash)
	if !filled.Complete(dir) {
		return nil
	}
	return newStd(t, dir, x.Hash, x.Names)
}

// writeIndex records that the std folder with this hash belongs to the toolchain.
func writeIndex(t *toolchain, path, hash string, names []string) error {
	if path == "" {
		return nil
	}
	x := stdIndex{Hash: hash, Names: names, Stamps: map[string]string{}}
	for _, name := range slices.Concat(names, overlay.Read()) {
		x.Stamps[name] = stamp(filepath.Join(t.GOROOT, "src", name))
	}
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return writeFile(path, text)
}
