package port

import (
	"encoding/binary"
	"net/netip"

	"loam/internal/siphash"
	"loam/wire"
)

// Ephemeral ports (RFC 6056). They should be hard to guess for those who would
// forge packets, and not be used again soon.
//
// A connection gets one by the double-hash algorithm (section 3.3.4): the search
// begins at an offset that depends on both addresses and the remote port by a
// secret, plus a counter. So the ports to one destination follow one another,
// each coming again only when all others were used, and to another destination
// they begin elsewhere. There are many counters, found by the same secret, so
// that connections to one destination do not tell how many there are to another.
//
// A socket that is bound to port 0 has no destination yet: its search begins
// anywhere (section 3.3.1).

// offsetPlaces is the number of counters (TABLE_LENGTH in RFC 6056).
const offsetPlaces = 1024

// ephemeral finds a port for the connection f, whose local port is 0: one that no
// program has bound, and from which there is no connection to the same peer.
func (t *Table) ephemeral(f flow) (uint16, bool) {
	h := t.hash(f)
	offset, counter := h>>32, &t.offsets[h%offsetPlaces]
	for range t.count {
		port := t.first + uint16((offset+*counter)%t.count)
		*counter++
		if p := t.ports[number{f.proto, port}]; p != nil && p.bound > 0 {
			continue
		}
		f.local = netip.AddrPortFrom(f.local.Addr(), port)
		if _, taken := t.flows[f]; !taken {
			return port, true
		}
	}
	return 0, false
}

// unused finds a port that nobody has in a way that could concern claim, even if
// both would share.
func (t *Table) unused(proto wire.Protocol, claim Claim) (uint16, bool) {
	claim.ReuseAddr, claim.ReusePort = false, false
	begin := t.random.Uint64() % t.count
	for i := range t.count {
		port := t.first + uint16((begin+i)%t.count)
		if !t.conflict(number{proto, port}, claim, nil) {
			return port, true
		}
	}
	return 0, false
}

func (t *Table) hash(f flow) uint64 {
	var b [35]byte
	local, remote := f.local.Addr().As16(), f.remote.Addr().As16()
	b[0] = uint8(f.proto)
	binary.BigEndian.PutUint16(b[1:], f.remote.Port())
	copy(b[3:], local[:])
	copy(b[19:], remote[:])
	return siphash.Sum(t.key, b[:])
}
