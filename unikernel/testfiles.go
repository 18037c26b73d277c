package unikernel

import (
	"cmp"
	"os"
	"path/filepath"
)

// This file chooses a test's files. A test starts in the folder of its package. It gets more of the host's files than
// other programs: those that tests are known to read, also of the parent folder. Files that it writes stay in its memory.

// testVolumes returns the volumes for a test binary that starts in folder. The parameter
// plain is the file that it gets as its own; empty: the test binary itself.
func testVolumes(program, plain, folder string, platform Platform) (all []Volume) {
	if !isModule(folder) && inModule(folder) {
		above := filepath.Dir(folder)
		all = append(all, Volume{Host: above, Guest: above, Writable: true, own: true})
	}
	all = append(all, Volume{Host: folder, Guest: folder, Writable: true})
	for _, name := range sharedFolders(folder) {
		all = append(all, Volume{Host: name, Guest: name})
	}
	if path, err := filepath.Abs(program); err == nil && platform == Machine { // a process already has a path for its own executable
		all = append(all, Volume{Host: cmp.Or(plain, path), Guest: path})
	}
	return all
}

// sharedFolders returns folders that packages of a module share: the testdata folders of the parent
// folders, up to the module's root. For packages of the standard library it adds the time zones of the Go
// distribution.
func sharedFolders(folder string) (list []string) {
	add := func(name string) {
		if st, err := os.Stat(name); err == nil && st.IsDir() {
			list = append(list, name)
		}
	}
	for dir := folder; ; dir = filepath.Dir(dir) {
		if dir != folder {
			add(filepath.Join(dir, "testdata"))
		}
		if isModule(dir) || dir == filepath.Dir(dir) {
			if filepath.Base(dir) == "src" {
				add(filepath.Join(filepath.Dir(dir), "lib", "time"))
			}
			return list
		}
	}
}

// inModule reports whether a folder belongs to a module.
func inModule(dir string) bool {
	for dir != filepath.Dir(dir) && !isModule(dir) {
		dir = filepath.Dir(dir)
	}
	return isModule(dir)
}

// isModule reports whether a folder is the root of a module.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
