package posix

import (
	"iter"

	"loam/posix/file"
	"loam/posix/procnet"
)

// ProcNet maps file names in /proc/net to functions that generate the content.
var ProcNet = seenBy(procnet.Files)

// SysNet maps file names in the folder of an interface in /sys/class/net to functions that generate the content.
func SysNet(name string) map[string]func(*Process) string { return seenBy(procnet.SysNet(name)) }

// DevSNMP6 returns a function that generates the content of /proc/net/dev_snmp6 for an interface.
func DevSNMP6(name string) func(*Process) string {
	f := procnet.DevSNMP6(name)
	return func(p *Process) string { return f(p.network()) }
}

func seenBy(files map[string]func(*procnet.View) string) map[string]func(*Process) string {
	all := make(map[string]func(*Process) string, len(files))
	for name, f := range files {
		all[name] = func(p *Process) string { return f(p.network()) }
	}
	return all
}

// network returns the network as this process sees it. For Linux programs, it contains the sockets of all processes.
func (p *Process) network() *procnet.View {
	v := &procnet.View{Net: p.net, UID: p.credentials.UID, Opened: p.opened()}
	if all, ok := p.terminals.Signals().(Lister); ok {
		v.Opened = p.openedBy(all.List())
	}
	return v
}

// Lister lists all processes. task.Groups implements it for Linux programs.
type Lister interface{ List() []*Process }

// openedBy yields each open file description of several processes once, with its inode number.
func (p *Process) openedBy(all []*Process) iter.Seq2[int, *file.Description] {
	return func(yield func(int, *file.Description) bool) {
		seen := map[*file.Description]bool{}
		for _, q := range all {
			for _, fd := range q.fds.List() {
				o := q.fds.Get(fd)
				if o == nil || seen[o] {
					continue
				}
				seen[o] = true
				if !yield(int(o.Number(&p.serial)), o) {
					return
				}
			}
		}
	}
}

// opened yields each open file description once, with one of its descriptors. The descriptor also
// serves as the inode number of a socket (/proc/self/fd).
func (p *Process) opened() iter.Seq2[int, *file.Description] {
	return func(yield func(int, *file.Description) bool) {
		seen := map[*file.Description]bool{}
		for _, fd := range p.fds.List() {
			o := p.fds.Get(fd)
			if o == nil || seen[o] {
				continue
			}
			seen[o] = true
			if !yield(fd, o) {
				return
			}
		}
	}
}
