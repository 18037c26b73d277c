package netlink

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/netdevice"
	"loam/stack"
	"loam/stack/neigh"
)

// The neighbour table in netlink (rtnetlink(7), linux/neighbour.h).

// neighbourStates maps states of the stack to NUD_*.
var neighbourStates = map[neigh.State]uint16{
	neigh.Incomplete: 0x01, neigh.Reachable: 0x02, neigh.Stale: 0x04, neigh.Delay: 0x08, neigh.Probe: 0x10,
	neigh.Negative: 0x20, neigh.Static: 0x80,
}

// describeNeighbours answers RTM_GETNEIGH with all neighbours, or with the neighbours of the address family and
// interface in the request's struct ndmsg.
func describeNeighbours(net *stack.Stack, r *reply, request []byte) {
	r.multi = true
	fam, index := byte(linux.AF_UNSPEC), 0
	if len(request) > 0 {
		fam = request[0]
	}
	if len(request) >= 8 {
		index = int(int32(binary.NativeEndian.Uint32(request[4:])))
	}
	for _, i := range netdevice.All(net) {
		if index != 0 && i.Index() != index {
			continue
		}
		for _, n := range i.Neighbours() {
			if fam == linux.AF_UNSPEC || fam == Family(n.Addr) {
				describeNeighbour(r, i.Index(), n)
			}
		}
	}
}

// describeNeighbour appends a struct ndmsg with its attributes. It includes the link-layer address if
// that is known.
func describeNeighbour(r *reply, index int, n neigh.Entry) {
	b, end := r.message(linux.RTM_NEWNEIGH)
	defer end()
	*b = append(*b, Family(n.Addr), 0, 0, 0)
	*b = binary.NativeEndian.AppendUint32(*b, uint32(index))
	*b = binary.NativeEndian.AppendUint16(*b, neighbourStates[n.State])
	*b = append(*b, 0, linux.RTN_UNICAST)
	Attribute(b, linux.NDA_DST, n.Addr.AsSlice())
	if n.State != neigh.Incomplete && n.State != neigh.Negative {
		Attribute(b, linux.NDA_LLADDR, n.MAC[:])
	}
}
