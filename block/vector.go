package block

import "errors"

// Vector is memory in several pieces, in order.
type Vector [][]byte

// Len returns the number of bytes.
func (v Vector) Len() int {
	n := 0
	for _, p := range v {
		n += len(p)
	}
	return n
}

// Cut returns the first n bytes, or all if there are fewer, and the rest. It does not change v.
func (v Vector) Cut(n int) (head, rest Vector) {
	for i, p := range v {
		switch {
		case n == 0:
			return v[:i:i], v[i:]
		case n < len(p):
			head = append(v[:i:i], p[:n])
			return head, append(Vector{p[n:]}, v[i+1:]...)
		}
		n -= len(p)
	}
	return v, nil
}

// Fits reports whether each piece is a multiple of unit bytes.
func (v Vector) Fits(unit int) bool {
	for _, p := range v {
		if len(p)%unit != 0 {
			return false
		}
	}
	return true
}

// first returns the part of v for one request, and the rest.
func (o *IO) first(v Vector) (head, rest Vector) {
	if len(v) <= o.info.MaxSegments {
		return v.Cut(o.info.MaxTransfer)
	}
	head, over := v[:o.info.MaxSegments].Cut(o.info.MaxTransfer)
	return head, append(over[:len(over):len(over)], v[o.info.MaxSegments:]...)
}

// Transfer reads into v or writes v, depending on op. It does not copy the memory if the device can access it. The
// offset and each piece are multiples of the sector. n is the number of bytes before the first request that failed. If the device
// may still access the memory, err is or wraps ErrHeld. v may be memory of a process, which reads and changes it meanwhile: see
// Request.
func (o *IO) Transfer(op Op, v Vector, off int64) (n int, err error) {
	c := o.acquire()
	defer o.release(c)
	for at := off; len(v) > 0 && err == nil; {
		k := 0
		for ; len(v) > 0 && k < window; k++ {
			r := &c.requests[k]
			*r = Request{Op: op, Offset: at, To: c.to}
			r.Data, v = o.first(v)
			at += r.Bytes()
		}
		var ok int
		ok, err = o.run(c, k)
		for i := range ok {
			n += int(c.requests[i].Bytes())
		}
		for i := range k {
			if errors.Is(c.requests[i].Err, ErrHeld) {
				err = c.requests[i].Err
			}
		}
	}
	return n, err
}

// Sector returns the unit of requests in bytes.
func (o *IO) Sector() int { return o.info.LogicalSector }

// ReadPart fills p from an offset, which is a multiple of the sector. The length of p need not be one.
func (o *IO) ReadPart(p []byte, off int64) error {
	rest := len(p) & (o.info.LogicalSector - 1)
	whole := len(p) - rest
	if whole > 0 {
		if _, err := o.ReadAt(p[:whole], off); err != nil {
			return err
		}
	}
	if rest == 0 {
		return nil
	}
	last := make([]byte, o.info.LogicalSector)
	_, err := o.ReadAt(last, off+int64(whole))
	copy(p[whole:], last)
	return err
}
