// Package hand defines the messages between the gateway and a program on the same host that handles the connections to
// its published ports itself. The gateway accepts a connection and passes its descriptor to the program. When the
// connection has ended, the program reports that.
//
// The messages travel over a socket pair (AF_UNIX, SOCK_SEQPACKET), which preserves
// message boundaries:
//
//	gateway ── Connection, with one descriptor (SCM_RIGHTS) ──▶ program
//	gateway ◀── one or more End messages in one packet ───────── program
//
// Both ends run on one machine, so numbers use its native byte order.
package hand

import "encoding/binary"

// Connection is the message that accompanies a descriptor.
type Connection struct {
	Port   uint16 // the program's port to which the client connected
	Client uint16 // identifies the connection in End: the port of the gateway that the program sees as the client's port
}

// ConnectionSize is the length of an encoded Connection, in bytes.
const ConnectionSize = 4

// Append appends the encoding of c to b.
func (c Connection) Append(b []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, c.Port)
	return binary.NativeEndian.AppendUint16(b, c.Client)
}

// ParseConnection decodes a message of the gateway. It returns false if the length is
// wrong.
func ParseConnection(b []byte) (Connection, bool) {
	if len(b) != ConnectionSize {
		return Connection{}, false
	}
	return Connection{binary.NativeEndian.Uint16(b), binary.NativeEndian.Uint16(b[2:])}, true
}

// End reports that a connection has ended.
type End struct {
	Client  uint16 // client port of the connection, as in Connection
	Refused bool   // the program did not accept the connection
	Reset   bool   // the client or the program has reset the connection
	In, Out uint64 // bytes received and sent by the program
}

// EndSize is the length of an encoded End, in bytes.
const EndSize = 24

// Flags of an encoded End: how the connection ended.
const (
	flagRefused = 1 << iota
	flagReset
)

// Append appends the encoding of e to b.
func (e End) Append(b []byte) []byte {
	var flags uint16
	if e.Refused {
		flags |= flagRefused
	}
	if e.Reset {
		flags |= flagReset
	}
	b = binary.NativeEndian.AppendUint16(b, e.Client)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, 0)
	b = binary.NativeEndian.AppendUint64(b, e.In)
	return binary.NativeEndian.AppendUint64(b, e.Out)
}

// NextEnd decodes the first End of a message from the program and returns the rest of the
// message. It returns false if b is shorter than an End.
func NextEnd(b []byte) (e End, rest []byte, ok bool) {
	if len(b) < EndSize {
		return End{}, nil, false
	}
	flags := binary.NativeEndian.Uint16(b[2:])
	return End{
		Client: binary.NativeEndian.Uint16(b), Refused: flags&flagRefused != 0, Reset: flags&flagReset != 0,
		In: binary.NativeEndian.Uint64(b[8:]), Out: binary.NativeEndian.Uint64(b[16:]),
	}, b[EndSize:], true
}
