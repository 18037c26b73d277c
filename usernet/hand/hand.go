// Package hand is what the gateway and a program on the same host say to each other
// about connections of published ports that the program serves itself: the gateway
// accepts a connection of the host's and hands over its descriptor, and the program
// tells when the connection has ended.
//
// They speak over a pair of sockets (AF_UNIX, SOCK_SEQPACKET), which keep messages apart:
//
//	gateway ── Connection, with one descriptor (SCM_RIGHTS) ──▶ program
//	gateway ◀── one End or several, one behind the other ────── program
//
// Both run on one machine: numbers have its byte order.
package hand

import "encoding/binary"

// Connection is what is said about a connection that is handed over.
type Connection struct {
	Port   uint16 // of the program, where the connection leads
	Client uint16 // the gateway's port, as the program sees it; it names the connection to its end
}

// ConnectionSize is the length of a Connection, in bytes.
const ConnectionSize = 4

// Append appends c to b.
func (c Connection) Append(b []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, c.Port)
	return binary.NativeEndian.AppendUint16(b, c.Client)
}

// ParseConnection reads a message of the gateway's; false: it is none.
func ParseConnection(b []byte) (Connection, bool) {
	if len(b) != ConnectionSize {
		return Connection{}, false
	}
	return Connection{binary.NativeEndian.Uint16(b), binary.NativeEndian.Uint16(b[2:])}, true
}

// End says how a connection has ended.
type End struct {
	Client  uint16 // as in Connection
	Refused bool   // the program did not take it
	Reset   bool   // one side has reset it
	In, Out uint64 // bytes that the program has received and sent
}

// EndSize is the length of an End, in bytes.
const EndSize = 24

// Flags of an End.
const (
	flagRefused = 1 << iota
	flagReset
)

// Append appends e to b.
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

// NextEnd reads the first End of a message of the program's and returns what stands
// behind it; false: there is none.
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
