package block

import "slices"

// Piece is the new content of a range of a device. Offset and the length of Data, in bytes, are multiples of the sector.
type Piece struct {
	Offset int64
	Data   []byte
}

// piecesInFlight is the maximum number of requests in flight of one call of WritePieces.
const piecesInFlight = 64

// WritePieces writes pieces, which do not overlap. It submits requests in the order of the pieces and keeps many in flight, so the
// device may complete them in any order. Adjacent pieces that follow one another become one request. After an error, no
// further request is submitted.
func (o *IO) WritePieces(pieces []Piece) (err error) {
	pieces = o.split(pieces)
	data := make([][]byte, len(pieces))
	for i, p := range pieces {
		data[i] = p.Data
	}
	c := o.acquire()
	defer o.release(c)
	all := min(piecesInFlight, len(pieces))
	requests := c.requests[:]
	if c.used = window; all > window {
		requests = make([]Request, all)
	}
	free, done := make([]*Request, all), make([]*Request, all)
	for i := range free {
		requests[i] = Request{Op: Write, To: c.to}
		free[i] = &requests[i]
	}
	for len(pieces) > 0 || len(free) < all {
		n := 0
		for ; n < len(free) && len(pieces) > 0; n++ {
			k := o.adjacent(pieces)
			free[n].Offset, free[n].Data = pieces[0].Offset, data[:k:k]
			pieces, data = pieces[k:], data[k:]
		}
		o.device.Submit(c.queue, free[:n])
		free = append(free[:0], free[n:]...)
		// The next requests are submitted when half of all are free, so that few submissions notify the device.
		for len(free) < all && (len(free) < (all+1)/2 || len(pieces) == 0) {
			n = c.to.Wait(done)
			for _, r := range done[:n] {
				hold(r)
				if r.Err != nil && err == nil {
					err, pieces = r.Err, nil
				}
			}
			free = append(free, done[:n]...)
		}
	}
	return err
}

// split divides the pieces that are too long for one request.
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
