package block

import "fmt"

// Check returns nil if a device with this description and capacity can take the
// request, and otherwise ErrInvalid, ErrReadOnly, ErrUnsupported or ErrRange.
// Devices call it once, in Submit; wrappers leave it to the wrapped device.
func (r *Request) Check(info *Info, size int64) error {
	if r.Op >= Ops || r.Flags&^(FUA|KeepAllocated) != 0 {
		return fmt.Errorf("%w: operation %d with flags %#x", ErrInvalid, r.Op, r.Flags)
	}
	if r.Op == Flush {
		return nil
	}
	if r.Op.Writes() && info.ReadOnly {
		return ErrReadOnly
	}
	most, err := r.limit(info)
	if err != nil {
		return err
	}
	n, mask := r.Bytes(), int64(info.LogicalSector-1)
	switch {
	case n <= 0 || n > most || (n|r.Offset)&mask != 0:
		return fmt.Errorf("%w: %v of %d bytes at %d", ErrInvalid, r.Op, n, r.Offset)
	case r.Offset < 0 || r.Offset > size || n > size-r.Offset:
		return fmt.Errorf("%w: %v of %d bytes at %d of %d", ErrRange, r.Op, n, r.Offset, size)
	}
	return nil
}

// limit returns the maximum number of bytes of one request of this operation.
func (r *Request) limit(info *Info) (most int64, err error) {
	switch r.Op {
	case Discard:
		most = info.MaxDiscard
	case WriteZeroes:
		most = info.MaxZeroes
	default:
		return int64(info.MaxTransfer), r.checkPieces(info)
	}
	if most == 0 {
		return 0, fmt.Errorf("%w: %v", ErrUnsupported, r.Op)
	}
	return most, nil
}

// checkPieces checks the pieces of Data one by one.
func (r *Request) checkPieces(info *Info) error {
	if len(r.Data) > info.MaxSegments {
		return fmt.Errorf("%w: %d pieces of memory, of %d", ErrInvalid, len(r.Data), info.MaxSegments)
	}
	for _, p := range r.Data {
		if len(p) == 0 || len(p)&(info.LogicalSector-1) != 0 {
			return fmt.Errorf("%w: a piece of memory of %d bytes", ErrInvalid, len(p))
		}
	}
	return nil
}
