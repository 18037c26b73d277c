package block

import "slices"

// Piece is the new content of a range of a device. Offset and the length of Data, in bytes, are multiples of the sector.
type Piece struct {
	Offset int64
	Data   []byte
}

// piecesInFlight is the maximum number of requests in flight of one call of WritePieces.
const piecesInFlight = 64

// WritePieces writes pieces in any order, with many requests in flight. The pieces do not overlap. A piece and the one that
// follows it are combined into one request if they are adjacent. After an error, no further request is submitted.
func (o *IO) WritePieces(pieces []Piece) (err error) {
	pieces = o.split(pieces)
	data := make([][]byte, len(pieces))
	for i, p := range pieces {
		data[i] = p.Data
	}
	to, queue := NewCompletions(), o.queue()
	free := make([]*Request, min(piecesInFlight, len(pieces)))
	for i := range free {
		free[i] = &Request{Op: Write, To: to}
	}
	all := len(free)
	done := make([]*Request, all)
	for len(pieces) > 0 || len(free) < all {
		submitted := len(free)
		for submitted > 0 && len(pieces) > 0 {
			n := o.adjacent(pieces)
			submitted--
			free[submitted].Offset, free[submitted].Data = pieces[0].Offset, data[:n:n]
			pieces, data = pieces[n:], data[n:]
		}
		o.device.Submit(queue, free[submitted:])
		free = free[:submitted]
		// The next requests are submitted when half of all are free, so that few submissions notify the device.
		for len(free) < all && (len(free) < (all+1)/2 || len(pieces) == 0) {
			n := to.Wait(done)
			for _, r := range done[:n] {
				if r.Err != nil && err == nil {
					err, pieces = r.Err, nil
				}
			}
			free = append(free, done[:n]...)
		}
	}
	return err
}

// split returns pieces of which none is too long for one request.
func (o *IO) split(pieces []Piece) (parts []Piece) {
	parts = make([]Piece, 0, len(pieces))
	for _, p := range pieces {
		at := p.Offset
		for part := range slices.Chunk(p.Data, o.info.MaxTransfer) {
			parts = append(parts, Piece{at, part})
			at += int64(len(part))
		}
	}
	return parts
}

// adjacent returns the number of pieces at the beginning of a list that one request can write.
func (o *IO) adjacent(pieces []Piece) int {
	n, end, bytes := 0, pieces[0].Offset, 0
	for n < min(len(pieces), o.info.MaxSegments) && pieces[n].Offset == end && bytes+len(pieces[n].Data) <= o.info.MaxTransfer {
		bytes += len(pieces[n].Data)
		end += int64(len(pieces[n].Data))
		n++
	}
	return n
}
