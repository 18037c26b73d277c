package posix

import (
	"fmt"
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// unixNames maps names to bound Unix sockets. An abstract name is only a string. A path refers to a
// file of the tree, which can be renamed, linked or removed, so a socket bound to a path is identified
// by its node.
type unixNames struct {
	mu     sync.Mutex
	byName map[string]*unixSocket  // abstract names
	byNode map[fs.Node]*unixSocket // paths
	auto   int                     // next number for a generated name
}

func (u *unixNames) init() {
	u.byName = make(map[string]*unixSocket)
	u.byNode = make(map[fs.Node]*unixSocket)
}

func isAbstract(name string) bool { return name != "" && name[0] == 0 }

// bindUnix binds s to a name. The empty name means a generated abstract name (autobind). Errors:
// EADDRINUSE, and the errors of creating a file.
func (p *Process) bindUnix(s *unixSocket, name string) (bound string, node fs.Node, errno Errno) {
	if name == "" || isAbstract(name) {
		bound, errno = p.names.bindAbstract(s, name)
		return bound, nil, errno
	}
	v := p.sight()
	err := v.Mknod(v.Dir, name, fs.Socket|0o777, fs.Device{})
	if err == linux.EEXIST {
		return "", nil, linux.EADDRINUSE
	}
	var place fs.Place
	if err == nil {
		place, err = v.Lookup(v.Dir, name, false)
	}
	if err != nil {
		return "", nil, file.ToErrno(err)
	}
	p.names.mu.Lock()
	p.names.byNode[place.Node] = s
	p.names.mu.Unlock()
	return name, place.Node, 0
}

// bindAbstract binds s to an abstract name. For the empty name it generates one of five hexadecimal
// digits.
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
		return "", linux.EADDRINUSE
	}
	u.byName[name] = s
	return name, 0
}

// release removes the name of a socket that is being closed.
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

// findUnix returns the socket bound to a name. Errors: ECONNREFUSED, EACCES, ENOENT, EINVAL for the
// empty name, and the errors of path lookup.
func (p *Process) findUnix(name string) (*unixSocket, Errno) {
	if name == "" {
		return nil, linux.EINVAL
	}
	var node fs.Node
	if !isAbstract(name) {
		v := p.sight()
		place, err := v.Lookup(v.Dir, name, true)
		if err == nil {
			err = v.Access(place, fs.ToWrite)
		}
		if err != nil {
			return nil, file.ToErrno(err)
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
		return nil, linux.ECONNREFUSED
	}
	return s, 0
}
