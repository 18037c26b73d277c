package socket

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/file"
)

// Credentials is struct ucred (unix(7)), and the process.
type Credentials struct {
	PID, UID, GID int32
	Process       file.Watched // nil: unknown, or a Go program
}

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
