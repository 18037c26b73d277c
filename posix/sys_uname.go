package posix

import (
	"sync"

	"loam/abi/linux"
)

// releaseMark is appended to the release name of the underlying kernel. Programs parse the release to learn which calls
// exist, so it must begin with the version of that kernel.
const releaseMark = "-loam"

// Uname implements uname(2). System and release come from the underlying kernel. The node name is
// Options.Hostname if that is set.
func (p *Process) Uname() linux.Utsname {
	var u linux.Utsname
	if k := p.kernel; k != nil {
		u = k.Names()
	}
	u.Release += releaseMark
	p.nodeNames.mu.Lock()
	defer p.nodeNames.mu.Unlock()
	if name := p.nodeNames.host; name != nil {
		u.Nodename = *name
	}
	if name := p.nodeNames.domain; name != nil {
		u.Domainname = *name
	}
	return u
}

// nodeNames holds the names that sethostname(2) and setdomainname(2) have set. A nil name has not been set, and is the name
// of the underlying kernel.
type nodeNames struct {
	mu           sync.Mutex
	host, domain *string
}

// SetHostname sets the node name of all processes. The caller has checked the rights and the length (sethostname(2)).
func (p *Process) SetHostname(name string) {
	p.nodeNames.mu.Lock()
	defer p.nodeNames.mu.Unlock()
	p.nodeNames.host = &name
}

// SetDomainName sets the domain name of all processes. The caller has checked the rights and the length (setdomainname(2)).
func (p *Process) SetDomainName(name string) {
	p.nodeNames.mu.Lock()
	defer p.nodeNames.mu.Unlock()
	p.nodeNames.domain = &name
}
