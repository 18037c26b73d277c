package posix

import (
	"fmt"
	"sync"
	"syscall"
)

// unixNames knows which Unix socket is bound to which name. An abstract name is
// a name and no more. A path is a file of the host's file system, which can be
// renamed, linked and removed there, so such a socket is known by the file that
// its path leads to; without a host, by the path itself.
type unixNames struct {
	mu     sync.Mutex
	byName map[string]*unixSocket
	byNode map[Node]*unixSocket
	auto   int
}

func (u *unixNames) init() {
	u.byName = make(map[string]*unixSocket)
	u.byNode = make(map[Node]*unixSocket)
}

func isAbstract(name string) bool { return name != "" && name[0] == 0 }

// bind gives s a name; the empty name means any abstract one (autobind).
// Errors: EADDRINUSE and what creating a file gives.
func (u *unixNames) bind(s *unixSocket, name string, host Host) (bound string, node Node, errno Errno) {
	if name != "" && !isAbstract(name) && host != nil {
		node, errno = host.MakeSocketNode(name)
		if errno == syscall.EEXIST {
			errno = syscall.EADDRINUSE
		}
		if errno == 0 {
			u.mu.Lock()
			u.byNode[node] = s
			u.mu.Unlock()
		}
		return name, node, errno
	}
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
		return "", node, syscall.EADDRINUSE
	}
	u.byName[name] = s
	return name, node, 0
}

// release forgets the name of a socket that is being closed.
func (u *unixNames) release(s *unixSocket, name string, node Node) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byName[name] == s {
		delete(u.byName, name)
	}
	if u.byNode[node] == s { // another file may have got the number
		delete(u.byNode, node)
	}
}

// find returns the socket that a name leads to. Errors: ECONNREFUSED, ENOENT and
// what looking for a file gives.
func (u *unixNames) find(name string, host Host) (*unixSocket, Errno) {
	var s *unixSocket
	switch {
	case name == "":
		return nil, syscall.EINVAL
	case isAbstract(name) || host == nil:
		u.mu.Lock()
		s = u.byName[name]
		u.mu.Unlock()
		if s == nil && !isAbstract(name) {
			return nil, syscall.ENOENT
		}
	default:
		node, errno := host.SocketNode(name)
		if errno != 0 {
			return nil, errno
		}
		u.mu.Lock()
		s = u.byNode[node]
		u.mu.Unlock()
	}
	if s == nil {
		return nil, syscall.ECONNREFUSED
	}
	return s, 0
}
