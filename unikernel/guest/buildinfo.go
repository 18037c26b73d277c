package guest

import "strings"

// RestoreModule undoes the replacement of one module by a copy in info, the text behind
// runtime/debug.ReadBuildInfo. borrowed is "PATH SUM". The line of that module gets the sum, and the line
// of the copy is removed. The bytes that frame the text stay unchanged.
func RestoreModule(info, borrowed string) string {
	path, sum, ok := strings.Cut(borrowed, " ")
	if !ok {
		return info
	}
	lines := strings.SplitAfter(info, "\n")
	for i := range len(lines) - 1 {
		// The module's line is "mod" or "dep", path, version. The replacement's line is "=>", folder,
		// version.
		fields := strings.Split(strings.TrimSuffix(lines[i], "\n"), "\t")
		if len(fields) == 3 && fields[1] == path && strings.HasPrefix(lines[i+1], "=>\t") {
			lines[i] = strings.Join(append(fields, sum), "\t") + "\n"
			lines[i+1] = ""
		}
	}
	return strings.Join(lines, "")
}

// ProfiledPackages and ProfileFlag form the flag that makes the go command compile Loam's packages with a
// profile: -gcflags=ProfiledPackages=ProfileFlagFILE.
const (
	ProfiledPackages = "loamguest/..."
	ProfileFlag      = "-pgoprofile="
)

// HideProfile removes the flag that ProfiledPackages and ProfileFlag form from info, the text behind
// runtime/debug.ReadBuildInfo.
func HideProfile(info string) string {
	const setting = "build\t-gcflags="
	before, rest, _ := strings.Cut(info, setting)
	value, after, _ := strings.Cut(rest, "\n")
	// The value is quoted if it contains a space.
	if !strings.HasPrefix(strings.TrimPrefix(value, `"`), ProfiledPackages+"=") {
		return info
	}
	return before + after
}
