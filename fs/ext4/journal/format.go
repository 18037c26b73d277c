package journal

// Formats of the blocks of the log. All fields are big-endian ("Layout", "Block Header").

const magic = 0xc03b3998

// Types of blocks of the log, in the block's header.
const (
	typeDescriptor = 1
	typeCommit     = 2
	typeSuper1     = 3
	typeSuper2     = 4
	typeRevoke     = 5
)

// Features of a log.
const (
	featureRevoke     = 0x1
	feature64         = 0x2
	featureAsync      = 0x4
	featureSum2       = 0x8
	featureSum3       = 0x10
	featureFastCommit = 0x20

	featuresKnown = featureRevoke | feature64 | featureSum2 | featureSum3 | featureFastCommit | featureAsync
)

const (
	headSize   = 12
	revokeHead = 16
	superSize  = 1024
	commitSum  = 16 // offset of the checksum in a commit block
	commitTime = 48
)

// Flags of a tag, which describes a block in a transaction.
const (
	tagEscaped  = 1 // the image begins with the magic number, which is replaced by zero in the log
	tagSameUUID = 2
	tagDeleted  = 4
	tagLast     = 8
)

// layout is the format of the blocks of a log, which depends on its features.
type layout struct {
	blockSize int
	wide      bool // block numbers of 64 bits
	sums      int  // version of checksums: 0 (none), 2 or 3
	seed      uint32
}

func newLayout(super []byte, blockSize int) layout {
	f := be.Uint32(super[0x28:])
	l := layout{blockSize: blockSize, wide: f&feature64 != 0, seed: crc(^uint32(0), super[0x30:0x40])}
	switch {
	case f&featureSum3 != 0:
		l.sums = 3
	case f&featureSum2 != 0:
		l.sums = 2
	}
	return l
}

// end returns the offset at which the tags or revocations of a block end.
func (l *layout) end() int {
	if l.sums > 0 {
		return l.blockSize - 4
	}
	return l.blockSize
}

// tagSize returns the length of a tag without a UUID.
func (l *layout) tagSize() int {
	if l.sums == 3 {
		return 16
	}
	n := 8
	if l.wide {
		n = 12
	}
	if l.sums == 2 {
		n += 2
	}
	return n
}

// tag describes a block whose image is in the log.
type tag struct {
	block uint64
	flags uint32
	sum   uint32 // checksum of the image in the log; version 2 stores 16 bits of it
}

func (l *layout) putTag(b []byte, t tag) {
	be.PutUint32(b, uint32(t.block))
	if l.sums == 3 {
		be.PutUint32(b[4:], t.flags)
		be.PutUint32(b[8:], uint32(t.block>>32))
		be.PutUint32(b[12:], t.sum)
		return
	}
	be.PutUint16(b[4:], 0)
	if l.sums == 2 {
		be.PutUint16(b[4:], uint16(t.sum))
	}
	be.PutUint16(b[6:], uint16(t.flags))
	if l.wide {
		be.PutUint32(b[8:], uint32(t.block>>32))
	}
}

func (l *layout) tag(b []byte) tag {
	t := tag{block: uint64(be.Uint32(b))}
	if l.sums == 3 {
		t.flags, t.sum = be.Uint32(b[4:]), be.Uint32(b[12:])
		t.block |= uint64(be.Uint32(b[8:])) << 32
		return t
	}
	t.sum, t.flags = uint32(be.Uint16(b[4:])), uint32(be.Uint16(b[6:]))
	if l.wide {
		t.block |= uint64(be.Uint32(b[8:])) << 32
	}
	return t
}

// imageSum returns the checksum of an image in the log.
func (l *layout) imageSum(sequence uint32, image []byte) uint32 {
	switch l.sums {
	case 2:
		return crc(crcNumber(l.seed, sequence), image) & 0xffff
	case 3:
		return crc(crcNumber(l.seed, sequence), image)
	}
	return 0
}

// seal writes the checksum at the end of a descriptor or a block of revocations.
func (l *layout) seal(b []byte) {
	if l.sums > 0 {
		at := l.blockSize - 4
		be.PutUint32(b[at:], 0)
		be.PutUint32(b[at:], crc(l.seed, b))
	}
}

func (l *layout) sealed(b []byte) bool {
	at := l.blockSize - 4
	return l.sums == 0 || crc(crc(l.seed, b[:at]), []byte{0, 0, 0, 0}) == be.Uint32(b[at:])
}

// commitOK verifies the checksum of a commit block.
func (l *layout) commitOK(b []byte) bool {
	sum := crc(crc(crc(l.seed, b[:commitSum]), []byte{0, 0, 0, 0}), b[commitSum+4:])
	return l.sums == 0 || sum == be.Uint32(b[commitSum:])
}

func putHead(b []byte, kind, sequence uint32) {
	be.PutUint32(b, magic)
	be.PutUint32(b[4:], kind)
	be.PutUint32(b[8:], sequence)
}

// head returns the type and the sequence number of a block of the log; ok is false if the block has
// no header.
func head(b []byte) (kind, sequence uint32, ok bool) {
	return be.Uint32(b[4:]), be.Uint32(b[8:]), be.Uint32(b) == magic
}
