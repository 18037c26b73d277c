package posix

// Uname is what uname(2) says. What is not sockets is the host's work still, so
// the system and its release are the host's, with Loam named behind: programs
// read the release to know what they may call.
type Uname struct {
	Node    string // the host name; empty: the host's
	Release string
}

// releaseMark stands behind the host's release.
const releaseMark = "-loam"

// Uname is uname(2).
func (p *Process) Uname() Uname {
	return Uname{Node: p.options.Hostname, Release: p.options.Release + releaseMark}
}
