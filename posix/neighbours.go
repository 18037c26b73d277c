package posix

import (
	"encoding/binary"
	"syscall"

	"loam/stack/neigh"
)

// Neighbours by netlink (rtnetlink(7), linux/neighbour.h).

// Attributes of neighbours.
const (
	ndaDst    = 1 // NDA_DST
	ndaLLAddr = 2 // NDA_LLADDR
)

// neighbourStates are the NUD_* of what the stack knows.
var neighbourStates = map[neigh.State]uint16{
	neigh.Incomplete: 0x01, neigh.Reachable: 0x02, neigh.Stale: 0x04, neigh.Delay: 0x08, neigh.Probe: 0x10,
	neigh.Negative: 0x20, neigh.Static: 0x80,
}

// describeNeighbours answers RTM_GETNEIGH: all neighbours, or those of the family and
// the link that the request names in its struct ndmsg.
func (p *Process) describeNeighbours(r *reply, request []byte) {
	r.multi = true
	fam, index := byte(syscall.AF_UNSPEC), 0
	if len(request) > 0 {
		fam = request[0]
	}
	if len(request) >= 8 {
		index = int(int32(binary.NativeEndian.Uint32(request[4:])))
	}
	for _, i := range p.interfaces() {
		if index != 0 && i.Index() != index {
			continue
		}
		for _, n := range i.Neighbours() {
			if fam == syscall.AF_UNSPEC || fam == family(n.Addr) {
				describeNeighbour(r, i.Index(), n)
			}
		}
	}
}

// describeNeighbour is a struct ndmsg and its attributes. The address on the link is told where it is known.
func describeNeighbour(r *reply, index int, n neigh.Entry) {
	b, end := r.message(syscall.RTM_NEWNEIGH)
	defer end()
	*b = append(*b, family(n.Addr), 0, 0, 0)
	*b = binary.NativeEndian.AppendUint32(*b, uint32(index))
	*b = binary.NativeEndian.AppendUint16(*b, neighbourStates[n.State])
	*b = append(*b, 0, syscall.RTN_UNICAST)
	attribute(b, ndaDst, n.Addr.AsSlice())
	if n.State != neigh.Incomplete && n.State != neigh.Negative {
		attribute(b, ndaLLAddr, n.MAC[:])
	}
}
