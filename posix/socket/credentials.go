package socket

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Credentials is struct ucred (unix(7)), and the process.
type Credentials struct {
	PID, UID, GID int32
	Process       file.Watched // nil: unknown, or a Go program
}

// Caller is a thread that calls a method of a socket. The socket may have been created by another process, and must not keep the Caller.
type Caller interface {
	// Credentials returns the IDs of the process and its effective user, as a peer sees them (SO_PEERCRED).
	Credentials() Credentials
	// View returns the file tree in which names of sockets are resolved. It must not be modified.
	View() *fs.View
}

// NoPeer is the value of SO_PEERCRED for a socket without a peer.
var NoPeer = Credentials{UID: -1, GID: -1}

// Unknown are the credentials of a sender that is not known: no process, and the overflow IDs of Linux (user_namespaces(7)).
var Unknown = Credentials{UID: 65534, GID: 65534}

// ParseCredentials decodes a struct ucred of at least linux.SizeofUcred bytes.
func ParseCredentials(b []byte) Credentials {
	word := func(at int) int32 { return int32(binary.NativeEndian.Uint32(b[at:])) }
	return Credentials{PID: word(0), UID: word(4), GID: word(8)}
}

// Value encodes a struct ucred.
func (c Credentials) Value() []byte {
	b := binary.NativeEndian.AppendUint32(make([]byte, 0, linux.SizeofUcred), uint32(c.PID))
	b = binary.NativeEndian.AppendUint32(b, uint32(c.UID))
	return binary.NativeEndian.AppendUint32(b, uint32(c.GID))
}

// valid reports whether a process can have these IDs: -1 means no ID.
func (c Credentials) valid() bool { return c.UID != -1 && c.GID != -1 }

// FromAnother reports whether the next byte of a stream is from another sender, and the socket passes credentials or processes of
// senders (SO_PASSCRED, SO_PASSPIDFD). As on Linux, a call then does not return bytes of both.
func FromAnother(s Socket, sender Credentials) bool {
	c := s.Common()
	c.Mu.Lock()
	passes := c.PassCred || c.PassPIDFD
	c.Mu.Unlock()
	if !passes {
		return false
	}
	next, errno := s.Recv(make([]byte, 1), linux.MSG_PEEK)
	return errno == 0 && next.N > 0 && next.Sender != sender
}
