package guest

import "strings"

// RestoreModule undoes, in the text that runtime/debug.ReadBuildInfo reads, the
// replacement of one module by a copy. What was borrowed is "PATH SUM": the line of
// that module gets the sum that it would have, and the line of the copy goes. The
// text is framed by bytes that stay as they are.
func RestoreModule(info, borrowed string) string {
	path, sum, ok := strings.Cut(borrowed, " ")
	if !ok {
		return info
	}
	lines := strings.SplitAfter(info, "\n")
	for i := range len(lines) - 1 {
		// "mod" or "dep", path and version; then "=>", folder and version.
		fields := strings.Split(strings.TrimSuffix(lines[i], "\n"), "\t")
		if len(fields) == 3 && fields[1] == path && strings.HasPrefix(lines[i+1], "=>\t") {
			lines[i] = strings.Join(append(fields, sum), "\t") + "\n"
			lines[i+1] = ""
		}
	}
	return strings.Join(lines, "")
}

// ProfiledPackages and ProfileFlag are how the go command is told to compile Loam's packages
// by a profile: -gcflags=ProfiledPackages=ProfileFlagFILE.
const (
	ProfiledPackages = "loamguest/..."
	ProfileFlag      = "-pgoprofile="
)

// HideProfile takes that flag out of the text that runtime/debug.ReadBuildInfo reads.
func HideProfile(info string) string {
	const setting = "build\t-gcflags="
	before, rest, _ := strings.Cut(info, setting)
	value, after, _ := strings.Cut(rest, "\n")
	// It is quoted if it has a space.
	if !strings.HasPrefix(strings.TrimPrefix(value, `"`), ProfiledPackages+"=") {
		return info
	}
	return before + after
}
