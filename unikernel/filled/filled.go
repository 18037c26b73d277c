// Package filled fills the folders of a cache: a folder appears when it is complete, and is filled again if files in it are lost.
package filled

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listOfFiles is a file in a folder that Fill has filled. For each other file it has the size and the name, each record with a zero
// byte at its end. The last record is endOfList.
const (
	listOfFiles = ".loam-files"
	endOfList   = "end\x00"
)

// Locker takes the lock of a folder, and returns the function that releases it.
type Locker func(dir string) (unlock func(), err error)

// Fill creates the folder dir, unless it exists and is complete. f fills a temporary folder in the same place, which is then
// renamed to dir while the function lock holds a lock of the parent folder. If two processes do this at the same time, both use the folder that was renamed first.
func Fill(dir string, lock Locker, f func(dir string) error) error {
	if Complete(dir) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := f(tmp); err != nil {
		return err
	}
	if err := writeList(tmp); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	return install(tmp, dir, lock)
}

// install renames a folder to dir, unless a complete folder is there. A damaged folder is removed.
func install(tmp, dir string, lock Locker) error {
	unlock, err := lock(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer unlock()
	if Complete(dir) {
		return nil
	}
	damaged := tmp + ".damaged"
	if err := os.Rename(dir, damaged); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	defer os.RemoveAll(damaged)
	return os.Rename(tmp, dir)
}

// writeList writes the list of the files in a folder.
func writeList(dir string) error {
	var list strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err == nil {
			fmt.Fprintf(&list, "%d %s\x00", st.Size(), name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, listOfFiles), []byte(list.String()+endOfList), 0o644)
}

// Complete reports whether a folder exists and no file in it is missing or too short, for example because the cache was cleaned
// up in part or the disk was full. It does not read the files. A longer file is allowed: the go command adds lines to a go.sum.
func Complete(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, listOfFiles))
	if err != nil {
		return false
	}
	list, whole := strings.CutSuffix(string(text), endOfList)
	for record := range strings.SplitSeq(list, "\x00") {
		text, name, found := strings.Cut(record, " ")
		if !found {
			continue // the end
		}
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return false
		}
		if st, err := os.Lstat(filepath.Join(dir, name)); err != nil || st.Size() < size {
			return false
		}
	}
	return whole
}
