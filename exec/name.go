package exec

import (
	"fmt"

	"loam/abi/linux"
)

// NameOf returns the name of a program that is found by a descriptor (execveat(2)), as scripts and AT_EXECFN see it.
func NameOf(dirfd int, path string) string {
	switch {
	case path == "":
		return fmt.Sprintf("/dev/fd/%d", dirfd)
	case dirfd == linux.AT_FDCWD || path[0] == '/':
		return path
	}
	return fmt.Sprintf("/dev/fd/%d/%s", dirfd, path)
}

// TaskName returns the name of a task after execve: the last part of a path, at most 15 bytes.
func TaskName(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			path = path[i+1:]
			break
		}
	}
	return path[:min(len(path), 15)]
}
