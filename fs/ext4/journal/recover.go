package journal

// Recovery is the result of Recover.
type Recovery struct {
	Transactions int // number of committed transactions that were applied
	Super        []byte
}

// Recover applies the contents of a log, in three passes ("Recovery"): find the last committed transaction; collect
// revocations; apply images. The function read returns a block of the log. The function apply is called with blocks of
// the device in the order in which they were logged. The caller makes them durable before it writes Recovery.Super to
// block 0 of the log. read and apply must not keep each other's memory. Errors: ErrDamaged, ErrUnsupported, and errors
// of read and apply.
func Recover(c Config, read func(uint32) ([]byte, error), apply func(uint64, []byte) error) (Recovery, error) {
	if err := checkSuper(c); err != nil {
		return Recovery{}, err
	}
	super := append([]byte(nil), c.Super...)
	r := &recovery{
		layout: newLayout(super, c.BlockSize), read: read, apply: apply, first: be.Uint32(super[0x14:]),
		length: be.Uint32(super[0x10:]), start: be.Uint32(super[0x1c:]), sequence: be.Uint32(super[0x18:]),
		revoked: map[uint64]uint32{},
	}
	if features := be.Uint32(super[0x28:]); features&featureFastCommit != 0 {
		if fast := be.Uint32(super[0x54:]); fast == 0 {
			r.length -= min(r.length, 256)
		} else {
			r.length -= min(r.length, fast)
		}
		if r.length < r.first+8 {
			return Recovery{}, ErrDamaged
		}
	}
	if r.start == 0 {
		return Recovery{Super: super}, nil
	}
	if r.start < r.first || r.start >= r.length {
		return Recovery{}, ErrDamaged
	}
	end, err := r.pass(scan, 0)
	if err == nil {
		_, err = r.pass(revoke, end)
	}
	if err == nil {
		_, err = r.pass(replay, end)
	}
	if err != nil {
		return Recovery{}, err
	}
	be.PutUint32(super[0x18:], end+1)
	be.PutUint32(super[0x1c:], 0)
	if r.sums > 0 {
		be.PutUint32(super[0xfc:], superSum(super))
	}
	return Recovery{Transactions: int(end - r.sequence), Super: super}, nil
}

// The three passes of recovery over the log.
const (
	scan = iota
	revoke
	replay
)

type recovery struct {
	layout
	read                           func(uint32) ([]byte, error)
	apply                          func(uint64, []byte) error
	first, length, start, sequence uint32
	revoked                        map[uint64]uint32 // sequence number of the newest transaction that revoked a block
}

// next returns the block of the ring after a block (the parameter at).
func (r *recovery) next(at uint32) uint32 {
	if at+1 >= r.length {
		return r.first
	}
	return at + 1
}

// pass walks the log. The scan pass ends at the first invalid block, and returns the sequence
// number of the first incomplete transaction. The other passes end at that transaction.
func (r *recovery) pass(kind int, end uint32) (uint32, error) {
	at, sequence := r.start, r.sequence
	for budget := r.length - r.first; budget > 0; budget-- {
		if kind != scan && sequence == end {
			return end, nil
		}
		b, err := r.read(at)
		if err != nil {
			return 0, err
		}
		blockType, number, ok := head(b)
		if !ok || number != sequence {
			return sequence, nil
		}
		at = r.next(at)
		switch blockType {
		case typeDescriptor:
			if !r.sealed(b) {
				return sequence, r.unlessScan(kind)
			}
			n, err := r.descriptor(kind, b, at, sequence)
			if err != nil {
				return 0, err
			}
			if n < 0 || uint32(n) >= budget {
				return sequence, r.unlessScan(kind)
			}
			for range n {
				at = r.next(at)
			}
			budget -= uint32(n)
		case typeRevoke:
			if !r.sealed(b) {
				return sequence, r.unlessScan(kind)
			}
			if kind == revoke {
				if err := r.revocations(b, sequence); err != nil {
					return 0, err
				}
			}
		case typeCommit:
			if !r.commitOK(b) {
				return sequence, r.unlessScan(kind)
			}
			sequence++
		default:
			return sequence, r.unlessScan(kind)
		}
	}
	return sequence, nil
}

// unlessScan returns nil in the scan pass, which ends at an invalid block, and ErrDamaged in the
// later passes, which must not find one.
func (r *recovery) unlessScan(kind int) error {
	if kind == scan {
		return nil
	}
	return ErrDamaged
}

// descriptor processes the tags of a descriptor block. The images of the tags begin at block at. It
// returns the number of tags, or -1 if the checksum of an image is wrong.
func (r *recovery) descriptor(kind int, b []byte, at, sequence uint32) (int, error) {
	n := 0
	for pos := headSize; pos+r.tagSize() <= r.end(); n++ {
		t := r.tag(b[pos:])
		if pos += r.tagSize(); t.flags&tagSameUUID == 0 {
			pos += 16
		}
		if kind == replay || kind == scan && r.sums > 0 {
			ok, err := r.image(kind, t, at, sequence)
			if err != nil {
				return 0, err
			}
			if !ok {
				return -1, nil
			}
		}
		at = r.next(at)
		if t.flags&tagLast != 0 {
			return n + 1, nil
		}
	}
	return n, nil
}

// image processes the image of a tag. In the scan pass it verifies the checksum; in the replay pass
// it also applies the image, unless the block was revoked. It returns false if the checksum is
// wrong.
func (r *recovery) image(kind int, t tag, at, sequence uint32) (bool, error) {
	data, err := r.read(at)
	if err != nil {
		return false, err
	}
	if r.imageSum(sequence, data) != t.sum && r.sums > 0 {
		return false, nil
	}
	if kind == scan {
		return true, nil
	}
	if last, ok := r.revoked[t.block]; ok && int32(sequence-last) <= 0 {
		return true, nil
	}
	if t.flags&tagEscaped != 0 {
		data = append([]byte(nil), data...)
		be.PutUint32(data, magic)
	}
	return true, r.apply(t.block, data)
}

func (r *recovery) revocations(b []byte, sequence uint32) error {
	size := 4
	if r.wide {
		size = 8
	}
	end := int(be.Uint32(b[12:]))
	if end > r.end() {
		return ErrDamaged
	}
	for at := revokeHead; at+size <= end; at += size {
		block := uint64(be.Uint32(b[at:]))
		if r.wide {
			block = be.Uint64(b[at:])
		}
		if last, ok := r.revoked[block]; !ok || int32(sequence-last) > 0 {
			r.revoked[block] = sequence
		}
	}
	return nil
}
