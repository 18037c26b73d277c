package unikernel

import (
	"os"
	"path/filepath"
	"strings"

	"loam/unikernel/guest"
)

// What a test binary is told to write, such as a profile, it writes to its own
// files; go test looks for it among the host's.

// outputFlags are the flags of a test binary that name a file to write
// (go help testflag).
var outputFlags = map[string]bool{
	"-test.coverprofile": true, "-test.cpuprofile": true, "-test.memprofile": true, "-test.blockprofile": true,
	"-test.mutexprofile": true, "-test.trace": true, "-test.testlogfile": true,
}

// testOutputs finds them among the arguments of a test binary, and the folders that
// it expects to be there. Relative paths begin where -test.outputdir says.
func testOutputs(args []string, folder string) (outputs, folders []string) {
	dir := folder
	var names []string
	for _, arg := range args {
		flag, value, _ := strings.Cut(arg, "=")
		switch {
		case value == "":
		case outputFlags[flag]:
			names = append(names, value)
		case flag == "-test.outputdir":
			dir = value
		case flag == "-test.gocoverdir":
			folders = append(folders, value)
		}
	}
	for _, name := range names {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		outputs = append(outputs, filepath.Clean(name))
		folders = append(folders, filepath.Dir(name))
	}
	return outputs, folders
}

// addOutputs has the guest hand over files when it ends.
func (n *network) addOutputs(o *Options) error {
	n.config.Folders = o.folders
	if o.Target.Platform == Machine {
		return nil
	}
	for _, path := range o.outputs {
		f, err := os.Create(path)
		if err != nil {
			return errorf("name a file that can be written", "%v", err)
		}
		n.config.Outputs = append(n.config.Outputs, guest.Output{Path: path, FD: n.give(f)})
	}
	return nil
}
