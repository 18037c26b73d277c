//go:build linux

package tap

import (
	"os"

	"loam/link"
)

// Files opens the interface as Open does, and returns the descriptors instead of
// a device: for a child process, which makes a device of them by FromFiles. The
// interface goes away, unless it existed before, when the last copy of them is
// closed.
func Files(c Config) ([]*os.File, link.Info, error) {
	fds, info, err := open(c)
	if err != nil {
		return nil, info, err
	}
	var files []*os.File
	for _, n := range fds {
		files = append(files, os.NewFile(uintptr(n), info.Name))
	}
	return files, info, nil
}
