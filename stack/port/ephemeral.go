package port

import (
	"encoding/binary"
	"net/netip"

	"loam/internal/siphash"
	"loam/wire"
)

// Ephemeral ports (RFC 6056). They should be hard to guess for an attacker who forges packets, and not be
// reused soon.
//
// A connection gets its port by the double-hash algorithm (section 3.3.4). The search begins at an offset, a
// keyed hash of both addresses and the remote port, plus a counter. Successive connections to one destination
// use successive ports, and a port repeats only after all others were used. For another destination the
// sequence begins elsewhere. There are many counters, selected by the same hash, so that connections to one
// destination do not reveal the number of connections to another.
//
// A socket bound to port 0 has no destination yet. Its search begins at a random port (section 3.3.1).

// offsetPlaces is the number of counters (TABLE_LENGTH in RFC 6056).
const offsetPlaces = 1024

// ephemeral returns a port for the connection f, whose local port is 0. No program has bound the port, and no
// connection from it to the same peer exists. It returns false if no port is left.
func (t *Table) ephemeral(f flow) (uint16, bool) {
	if !t.changed && t.peers[f] >= t.count { // all ephemeral ports have a connection to this peer, so a search would find none
		return 0, false
	}
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

// unused returns a port without any binding that could overlap claim, even if the options allow sharing. It returns false if
// no such port is left.
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
