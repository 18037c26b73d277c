package debian

import (
	"os/exec"
	"strings"
)

// IsFrom reports whether the program found in PATH belongs to the given project, judged by the output
// of its -V flag. Debian has two programs of some names, such as arping and ping. They differ in
// options and output, and installing one package removes the other.
func IsFrom(program, project string) bool {
	out, _ := exec.Command(program, "-V").CombinedOutput() // for another program, -V may be an error
	return strings.Contains(string(out), project)
}
