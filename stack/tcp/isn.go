package tcp

// Numbers that an outsider cannot guess (RFC 6528, RFC 7323 section 5.4). Each is a keyed hash of the
// connection's ID; a tag separates the three uses.

import (
	"encoding/binary"
	"time"

	"loam/internal/siphash"
)

// Key is a secret from which initial sequence numbers, timestamp offsets and SYN cookies are derived.
// Machines that share a Key accept each other's cookies.
type Key struct{ secret siphash.Key }

// NewKey returns a key made of 16 random bytes.
func NewKey(b [16]byte) *Key {
	return &Key{siphash.NewKey(b)}
}

// Tags that are hashed too, so that each use of the keyed hash gives other values.
const (
	tagISN       = 1
	tagTimestamp = 2
	tagCookie    = 3
)

// hash returns the keyed hash of an ID, a tag and an argument.
func (k *Key) hash(tag uint32, id ID, arg uint64) uint64 {
	var b [48]byte
	local, remote := id.Local.Addr().As16(), id.Remote.Addr().As16()
	copy(b[0:], local[:])
	copy(b[16:], remote[:])
	binary.LittleEndian.PutUint16(b[32:], id.Local.Port())
	binary.LittleEndian.PutUint16(b[34:], id.Remote.Port())
	binary.LittleEndian.PutUint32(b[36:], tag)
	binary.LittleEndian.PutUint64(b[40:], arg)
	return siphash.Sum(k.secret, b[:])
}

// ISN returns the initial sequence number of a connection (RFC 6528): a hash of the ID plus a clock with a tick of 4
// microseconds. A new connection with the same ID therefore starts after the numbers of the previous one.
func (k *Key) ISN(now Time, id ID) uint32 {
	return uint32(now/(4*time.Microsecond)) + uint32(k.hash(tagISN, id, 0))
}

// TimestampOffset returns the offset that is added to the clock in a connection's timestamps. It is the same
// for all connections with the same ID, so timestamps distinguish successive connections (RFC 6191).
func (k *Key) TimestampOffset(id ID) uint32 {
	return uint32(k.hash(tagTimestamp, id, 0))
}
