package ip

// pieces holds the parts of a payload that have arrived, as sorted byte ranges that neither touch nor
// overlap. The gaps between them are the holes of RFC 815.
type pieces struct {
	count int
	piece [maxPieces]piece
}

// piece is the byte range [from, to).
type piece struct{ from, to int32 }

// maxPieces is enough for 64 fragments in the worst order: 64 kB at an MTU of 1 kB. A datagram with more pieces is probably
// an attack.
const maxPieces = 32

// outcome is the result of adding a piece.
type outcome uint8

const (
	added     outcome = iota
	contained         // all bytes of the piece had already arrived
	overlap           // some bytes of the piece had already arrived
	scattered         // there is no room for another piece
)

// add records that the bytes [from, to), at least one, have arrived. Nothing has changed
// unless it returns the outcome named added.
func (p *pieces) add(from, to int) outcome {
	n := piece{int32(from), int32(to)}
	i := 0
	for i < p.count && p.piece[i].to < n.from {
		i++
	}
	// Piece i, if it exists, ends at or after the beginning of n.
	if i < p.count && p.piece[i].from <= n.from && n.to <= p.piece[i].to {
		return contained
	}
	joinsLeft := i < p.count && p.piece[i].to == n.from
	next := i
	if joinsLeft {
		next++
	}
	if next < p.count && p.piece[next].from < n.to {
		return overlap
	}
	joinsRight := next < p.count && p.piece[next].from == n.to
	switch {
	case joinsLeft && joinsRight:
		p.piece[i].to = p.piece[next].to
		copy(p.piece[next:], p.piece[next+1:p.count])
		p.count--
	case joinsLeft:
		p.piece[i].to = n.to
	case joinsRight:
		p.piece[i].from = n.from
	case p.count == maxPieces:
		return scattered
	default:
		copy(p.piece[i+1:], p.piece[i:p.count])
		p.piece[i] = n
		p.count++
	}
	return added
}

// end returns the offset after the last byte that has arrived.
func (p *pieces) end() int {
	if p.count == 0 {
		return 0
	}
	return int(p.piece[p.count-1].to)
}

// whole reports whether every byte before the offset end has arrived.
func (p *pieces) whole(end int) bool {
	return p.count == 1 && p.piece[0] == piece{0, int32(end)}
}
