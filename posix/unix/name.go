package unix

import (
	"fmt"
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
	"loam/posix/socket"
)

// Names maps names to bound Unix sockets. An abstract name is only a string. A path refers to a
// file of the tree, which can be renamed, linked or removed, so a socket bound to a path is identified
// by its node.
type Names struct {
	socket.Transit
	mu     sync.Mutex
	byName map[string]*Socket  // sockets with an abstract name
	byNode map[fs.Node]*Socket // sockets bound to a path, by the node of the file
	auto   int                 // next number of a generated name
}

func (u *Names) Init() {
	u.byName = make(map[string]*Socket)
	u.byNode = make(map[fs.Node]*Socket)
}

func isAbstract(name string) bool { return name != "" && name[0] == 0 }

// bind binds s to a name. The process by becomes the owner of the file. s.Mu is held. The empty name means a generated abstract name
// (autobind). Errors: EADDRINUSE, and the errors of creating a file.
func (u *Names) bind(by socket.Caller, s *Socket, name string) (bound string, node fs.Node, errno linux.Errno) {
	if name == "" || isAbstract(name) {
		bound, errno = u.bindAbstract(s, name)
		return bound, nil, errno
	}
	v := by.View()
	node, err := v.MakeNode(v.Dir, name, fs.Socket|s.mode, fs.Device{})
	switch {
	case err == linux.EEXIST:
		return "", nil, linux.EADDRINUSE
	case err != nil:
		return "", nil, file.ToErrno(err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byNode[node] != nil {
		return "", nil, linux.EADDRINUSE
	}
	u.byNode[node] = s
	return name, node, 0
}

// bindAbstract binds s to an abstract name. If the name is empty, it generates a name of
// five hexadecimal digits.
func (u *Names) bindAbstract(s *Socket, name string) (string, linux.Errno) {
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
func (u *Names) release(s *Socket, name string, node fs.Node) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byName[name] == s {
		delete(u.byName, name)
	}
	if node != nil && u.byNode[node] == s {
		delete(u.byNode, node)
	}
}

// find returns the socket bound to a name, if the caller may write to its file. Errors: ECONNREFUSED, EACCES, ENOENT, EINVAL for the
// empty name, and the errors of path lookup.
func (u *Names) find(by socket.Caller, name string) (*Socket, linux.Errno) {
	if name == "" {
		return nil, linux.EINVAL
	}
	var node fs.Node
	if !isAbstract(name) {
		v := by.View()
		place, err := v.Lookup(v.Dir, name, true)
		if err == nil {
			err = v.Access(place, fs.ToWrite)
		}
		if err != nil {
			return nil, file.ToErrno(err)
		}
		node = place.Node
	}
	u.mu.Lock()
	s := u.byName[name]
	if node != nil {
		s = u.byNode[node]
	}
	u.mu.Unlock()
	if s == nil {
		return nil, linux.ECONNREFUSED
	}
	return s, 0
}
