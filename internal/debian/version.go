package debian

import (
	"os/exec"
	"strings"
)

// IsFrom reports whether the program that PATH has by a name is the one whose version,
// asked for by -V, has project in its text. Debian has two of some names, as of arping
// and of ping, which differ in options and in what they print, and whose packages take
// each other away.
func IsFrom(program, project string) bool {
	out, _ := exec.Command(program, "-V").CombinedOutput() // another's -V may be an error
	return strings.Contains(string(out), project)
}
