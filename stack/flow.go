package stack

import "net/netip"

// flow is the key of a connection: the local end and the remote end. IPv4 addresses are
// in IPv4-mapped form, so that one map serves both versions. The key has no pointers: a
// map with it takes less than half the memory of one with netip.AddrPort pairs.
type flow struct {
	local, remote         [16]byte
	localPort, remotePort uint16
}

// flowOf returns the key of a connection. Zones are not part of it.
func flowOf(local, remote netip.AddrPort) flow {
	return flow{local.Addr().As16(), remote.Addr().As16(), local.Port(), remote.Port()}
}
