package unikernel

import (
	"os"
	"path/filepath"
)

// A test begins in the folder of its package, and finds more of the host there than
// other programs do: what tests are known to read, the files of the folder above among
// it. What it writes stays in its own memory.

// testVolumes lists that for a test binary that begins in folder.
func testVolumes(program, folder string, platform Platform) (all []Volume) {
	if !isModule(folder) && inModule(folder) {
		above := filepath.Dir(folder)
		all = append(all, Volume{Host: above, Guest: above, Writable: true, own: true})
	}
	all = append(all, Volume{Host: folder, Guest: folder, Writable: true})
	for _, name := range sharedFolders(folder) {
		all = append(all, Volume{Host: name, Guest: name})
	}
	if path, err := filepath.Abs(program); err == nil && platform == Machine { // a process has its file
		all = append(all, Volume{Host: path, Guest: path})
	}
	return all
}

// sharedFolders are those that packages of a module share with their neighbours: the
// folders testdata beside the packages above, up to the module's own. Packages of the
// standard library share the time zones of the Go distribution besides.
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

// inModule reports whether a folder is of a module.
func inModule(dir string) bool {
	for dir != filepath.Dir(dir) && !isModule(dir) {
		dir = filepath.Dir(dir)
	}
	return isModule(dir)
}

// isModule reports whether a folder is that of a whole module.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
