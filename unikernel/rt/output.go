package rt

import (
	"os"
	"syscall"

	"loam/unikernel/guest"
)

// Files that the program writes and the host is to have, such as the profiles of
// `loam test`: they are copied when the program ends by itself. Until then they are
// files of the tree like all others.

// output is one of them, and the host's file that gets it.
type output struct {
	path string
	to   *os.File
}

// keepOutputs arranges it. It is called before the host can no longer be asked
// about descriptors.
func keepOutputs(c guest.Config) {
	for _, o := range c.Outputs {
		kept := output{o.Path, hostFile(o.FD, o.Path)}
		atExit(kept.copy)
	}
}

// copy copies the file, if the program has made it.
func (o output) copy() {
	fd, errno := process.OpenAt(atFDCWD, o.path, syscall.O_RDONLY, 0)
	if errno != 0 {
		return
	}
	defer process.Close(fd)
	b := make([]byte, loanSize)
	for {
		n, errno := process.Read(fd, b)
		if errno != 0 || n == 0 {
			return
		}
		if _, err := o.to.Write(b[:n]); err != nil {
			os.Stderr.WriteString("loam: " + o.path + " is not complete: " + err.Error() + "\n")
			return
		}
	}
}
