package file

import (
	"strconv"
	"strings"
)

// DescriptorIn returns the number of the descriptor that a path names for the process pid: a path in /proc/self/fd (proc(5)) or in
// one of the links to that directory, or /dev/stdin, /dev/stdout or /dev/stderr.
func DescriptorIn(path string, pid int) (int, bool) {
	if !strings.HasPrefix(path, "/proc/") && !strings.HasPrefix(path, "/dev/") {
		return 0, false
	}
	return descriptorIn(path, pid)
}

func descriptorIn(path string, pid int) (int, bool) {
	for i, name := range [...]string{"/dev/stdin", "/dev/stdout", "/dev/stderr"} {
		if path == name {
			return i, true
		}
	}
	own := "/proc/" + strconv.Itoa(pid) + "/fd/"
	for _, dir := range [...]string{"/proc/self/fd/", "/dev/fd/", "/proc/thread-self/fd/", own} {
		if rest, ok := strings.CutPrefix(path, dir); ok {
			n, err := strconv.ParseUint(rest, 10, 31)
			return int(n), err == nil
		}
	}
	return 0, false
}
