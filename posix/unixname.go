package posix

import (
	"fmt"
	"sync"
	"syscall"

	"loam/fs"
)

// unixNames knows which Unix socket is bound to which name. An abstract name is
// a name and no more. A path is a file of the tree, which can be renamed, linked
// and removed there, so such a socket is known by the file that its path leads
// to.
type unixNames struct {
	mu     sync.Mutex
	byName map[string]*unixSocket
	byNode map[fs.Node]*unixSocket
	auto   int
}

func (u *unixNames) init() {
	u.byName = make(map[string]*unixSocket)
	u.byNode = make(map[fs.Node]*unixSocket)
}

func isAbstract(name string) bool { return name != "" && name[0] == 0 }

// bindUnix gives s a name; the empty name means any abstract one (autobind).
// Errors: EADDRINUSE and what creating a file gives.
func (p *Process) bindUnix(s *unixSocket, name string) (bound string, node fs.Node, errno Errno) {
	if name == "" || isAbstract(name) {
		bound, errno = p.names.bindAbstract(s, name)
		return bound, nil, errno
	}
	v := p.view.Load()
	err := v.Mknod(v.Dir, name, fs.Socket|0o777, fs.Device{})
	if err == syscall.EEXIST {
		return "", nil, syscall.EADDRINUSE
	}
	var place fs.Place
	if err == nil {
		place, err = v.Lookup(v.Dir, name, false)
	}
	if err != nil {
		return "", nil, toErrno(err)
	}
	p.names.mu.Lock()
	p.names.byNode[place.Node] = s
	p.names.mu.Unlock()
	return name, place.Node, 0
}

func (u *unixNames) bindAbstract(s *unixSocket, name string) (string, Errno) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name == "" || name == "\x00" && u.byName[name] != nil {
		name = fmt.Sprintf("\x00%05x", u.auto)
		u.auto++
		if u.byName[name] != nil {
			name = ""
		}
	}
	if u.byName[name] != nil {
		return "", syscall.EADDRINUSE
	}
	u.byName[name] = s
	return name, 0
}

// release forgets the name of a socket that is being closed.
func (u *unixNames) release(s *unixSocket, name string, node fs.Node) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byName[name] == s {
		delete(u.byName, name)
	}
	if node != nil && u.byNode[node] == s {
		delete(u.byNode, node)
	}
}

// findUnix returns the socket that a name leads to. Errors: ECONNREFUSED, EACCES,
// ENOENT and what looking for a file gives.
func (p *Process) findUnix(name string) (*unixSocket, Errno) {
	if name == "" {
		return nil, syscall.EINVAL
	}
	var node fs.Node
	if !isAbstract(name) {
		v := p.view.Load()
		place, err := v.Lookup(v.Dir, name, true)
		if err == nil {
			err = v.Access(place, fs.ToWrite)
		}
		if err != nil {
			return nil, toErrno(err)
		}
		node = place.Node
	}
	p.names.mu.Lock()
	s := p.names.byName[name]
	if node != nil {
		s = p.names.byNode[node]
	}
	p.names.mu.Unlock()
	if s == nil {
		return nil, syscall.ECONNREFUSED
	}
	return s, 0
}
