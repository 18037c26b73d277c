package journal

import (
	"bytes"
	"cmp"
	"slices"
)

// Config describes the log to open.
type Config struct {
	Super     []byte // superblock of the log, which is block 0; it is copied
	BlockSize int    // size of a block in bytes, the same in the file system and the log
	Length    uint32 // number of blocks of the log's file
	Wide      bool   // block numbers of the device may exceed 32 bits
	Checksums bool   // the file system has metadata_csum
}

// StepKind is the operation of a Step.
type StepKind uint8

// Values of StepKind: operations on the device.
const (
	WriteLog  StepKind = iota // writes a block of the log: Block is the index of the block in the log
	WriteHome                 // writes a block of the device: Block is the number of the block
	Flush                     // a barrier: all earlier steps must be durable before a later one begins
)

// Step is a write or a barrier. Neither side modifies Data later.
type Step struct {
	Kind  StepKind
	Block uint64
	Data  []byte
}

// Image is the new content of a block.
type Image struct {
	Block uint64
	Data  []byte
}

// Sort sorts images by the numbers of their blocks.
func Sort(images []Image) {
	slices.SortFunc(images, func(a, b Image) int { return cmp.Compare(a.Block, b.Block) })
}

// Transaction is a set of changes that become durable together.
type Transaction struct {
	Images  []Image
	Revoked []uint64 // blocks that were freed, or that now hold file content
	// Seconds and Nanoseconds are the time of the commit since 1970.
	Seconds     uint64
	Nanoseconds uint32
}

// Log is a journal. It belongs to one goroutine at a time.
type Log struct {
	layout
	super    []byte
	first    uint32 // number of the first block of the ring
	length   uint32 // end of the ring: the number after its last block
	head     uint32 // block of the ring where the next transaction begins
	used     uint32 // number of blocks between tail and head
	sequence uint32 // sequence number of the next transaction
	empty    bool   // the superblock on disk says that no recovery is needed
	waiting  map[uint64][]byte
}

// Open checks the superblock of a log that has been recovered, or needs no recovery. Errors:
// ErrDamaged, ErrUnsupported.
func Open(c Config) (*Log, error) {
	if err := checkSuper(c); err != nil {
		return nil, err
	}
	super := bytes.Clone(c.Super)
	if be.Uint32(super[0x1c:]) != 0 {
		return nil, ErrDamaged // the log needs recovery before it is written
	}
	be.PutUint32(super[4:], typeSuper2)
	features := be.Uint32(super[0x28:])&^(featureSum2|featureSum3|feature64|featureFastCommit|featureAsync) | featureRevoke
	if c.Wide {
		features |= feature64
	}
	if c.Checksums {
		features |= featureSum3
		super[0x50] = 4 // s_checksum_type: crc32c
	}
	be.PutUint32(super[0x24:], be.Uint32(super[0x24:])&^1) // the checksums of version 1 are turned off
	be.PutUint32(super[0x28:], features)
	l := &Log{
		layout: newLayout(super, c.BlockSize), super: super, first: be.Uint32(super[0x14:]),
		length: min(be.Uint32(super[0x10:]), c.Length), sequence: be.Uint32(super[0x18:]) + 1,
		empty: true, waiting: map[uint64][]byte{},
	}
	l.head = l.first
	return l, nil
}

// Init writes block 0 of an empty log with the given number of blocks. uuid is the UUID of the file
// system.
func Init(b []byte, blocks uint32, uuid [16]byte) {
	clear(b)
	putHead(b, typeSuper2, 0)
	be.PutUint32(b[0xc:], uint32(len(b)))
	be.PutUint32(b[0x10:], blocks)
	be.PutUint32(b[0x14:], 1) // s_first: the ring begins at block 1
	be.PutUint32(b[0x18:], 1) // s_sequence: the first sequence number is 1
	copy(b[0x30:], uuid[:])
	be.PutUint32(b[0x40:], 1) // number of file systems that use the log
}

// checkSuper checks the fields that Open and Recover rely on.
func checkSuper(c Config) error {
	if len(c.Super) < superSize {
		return ErrDamaged
	}
	kind, _, ok := head(c.Super)
	first, length := be.Uint32(c.Super[0x14:]), be.Uint32(c.Super[0x10:])
	switch {
	case !ok || kind != typeSuper1 && kind != typeSuper2 || be.Uint32(c.Super[0xc:]) != uint32(c.BlockSize):
		return ErrDamaged
	case first < 1 || length > c.Length || length < first+8 || be.Uint32(c.Super[0x1c:]) >= length:
		return ErrDamaged
	}
	if kind == typeSuper2 {
		features := be.Uint32(c.Super[0x28:])
		if features&^featuresKnown != 0 || be.Uint32(c.Super[0x2c:]) != 0 {
			return ErrUnsupported
		}
		if features&(featureSum2|featureSum3) != 0 && superSum(c.Super) != be.Uint32(c.Super[0xfc:]) {
			return ErrDamaged
		}
	}
	return nil
}

func superSum(b []byte) uint32 {
	return crc(crc(crc(^uint32(0), b[:0xfc]), []byte{0, 0, 0, 0}), b[0x100:superSize])
}

// Capacity returns the maximum number of images and revocations together in one transaction that
// fits an empty log.
func (l *Log) Capacity() int {
	n := int(l.length - l.first)
	return n - n/16 - 8
}

// Used returns the percentage of the log that is not checkpointed.
func (l *Log) Used() int { return int(uint64(l.used) * 100 / uint64(l.length-l.first)) }

// perBlock returns the maximum number of tags, and of revocations, in a block.
func (l *Log) perBlock() (tags, revoked int) {
	size := 4
	if l.wide {
		size = 8
	}
	return (l.end() - headSize - 16) / l.tagSize(), (l.end() - revokeHead) / size
}

// need returns the number of blocks of the log that a transaction takes.
func (l *Log) need(t *Transaction) int {
	tags, revoked := l.perBlock()
	return len(t.Images) + (len(t.Images)+tags-1)/tags + (len(t.Revoked)+revoked-1)/revoked + 1
}

// Fits reports whether the log has room for a transaction. If not, call Checkpoint first.
func (l *Log) Fits(t *Transaction) bool { return l.need(t) <= int(l.length-l.first-l.used) }

// Commit appends a transaction and returns the steps that write it. The caller writes the
// transaction's file contents before the first Flush of these steps. The log treats the transaction as committed from
// now on: a caller that cannot execute the steps must stop writing to the file system. Errors:
// ErrFull.
func (l *Log) Commit(t *Transaction) ([]Step, error) {
	if !l.Fits(t) {
		return nil, ErrFull
	}
	var steps []Step
	if l.empty {
		l.empty = false
		steps = append(steps, l.superStep(l.head))
	}
	steps = l.revocations(steps, t.Revoked)
	steps = l.images(steps, t.Images)
	steps = append(steps, Step{Kind: Flush}, l.commitBlock(t), Step{Kind: Flush})
	for _, block := range t.Revoked {
		delete(l.waiting, block)
	}
	for _, i := range t.Images {
		l.waiting[i.Block] = i.Data
	}
	l.sequence++
	return steps, nil
}

// place returns a step that writes the next block of the ring.
func (l *Log) place(data []byte) Step {
	s := Step{WriteLog, uint64(l.head), data}
	l.used++
	if l.head++; l.head == l.length {
		l.head = l.first
	}
	return s
}

func (l *Log) block(kind uint32) []byte {
	b := make([]byte, l.blockSize)
	putHead(b, kind, l.sequence)
	return b
}

func (l *Log) revocations(steps []Step, revoked []uint64) []Step {
	_, per := l.perBlock()
	for len(revoked) > 0 {
		n := min(per, len(revoked))
		b := l.block(typeRevoke)
		at := revokeHead
		for _, block := range revoked[:n] {
			if l.wide {
				be.PutUint64(b[at:], block)
				at += 8
			} else {
				be.PutUint32(b[at:], uint32(block))
				at += 4
			}
		}
		be.PutUint32(b[12:], uint32(at))
		l.seal(b)
		steps = append(steps, l.place(b))
		revoked = revoked[n:]
	}
	return steps
}

func (l *Log) images(steps []Step, images []Image) []Step {
	per, _ := l.perBlock()
	for len(images) > 0 {
		n := min(per, len(images))
		b := l.block(typeDescriptor)
		at := headSize
		logged := make([][]byte, n)
		for i, image := range images[:n] {
			t := tag{block: image.Block, flags: tagSameUUID}
			logged[i] = image.Data
			if be.Uint32(image.Data) == magic {
				t.flags |= tagEscaped
				logged[i] = bytes.Clone(image.Data)
				be.PutUint32(logged[i], 0)
			}
			if i == 0 {
				t.flags &^= tagSameUUID
			}
			if i == n-1 {
				t.flags |= tagLast
			}
			t.sum = l.imageSum(l.sequence, logged[i])
			l.putTag(b[at:], t)
			at += l.tagSize()
			if i == 0 {
				copy(b[at:], l.super[0x30:0x40])
				at += 16
			}
		}
		l.seal(b)
		steps = append(steps, l.place(b))
		for _, data := range logged {
			steps = append(steps, l.place(data))
		}
		images = images[n:]
	}
	return steps
}

func (l *Log) commitBlock(t *Transaction) Step {
	b := l.block(typeCommit)
	be.PutUint64(b[commitTime:], t.Seconds)
	be.PutUint32(b[commitTime+8:], t.Nanoseconds)
	if l.sums > 0 {
		be.PutUint32(b[commitSum:], crc(l.seed, b))
	}
	return l.place(b)
}

// superStep returns a step that writes the superblock. The log then begins at tail, or is empty if
// tail is 0.
func (l *Log) superStep(tail uint32) Step {
	be.PutUint32(l.super[0x18:], l.sequence)
	be.PutUint32(l.super[0x1c:], tail)
	if l.sums > 0 {
		be.PutUint32(l.super[0xfc:], superSum(l.super))
	}
	return Step{WriteLog, 0, bytes.Clone(l.super)}
}

// Waiting returns the newest committed image of a block that is not yet written home, or nil if
// there is none.
func (l *Log) Waiting(block uint64) []byte { return l.waiting[block] }

// Checkpoint returns the steps that write all committed images home, and empties the log.
func (l *Log) Checkpoint() []Step {
	if l.empty {
		return nil
	}
	steps := make([]Step, 0, len(l.waiting)+3)
	for block, data := range l.waiting {
		steps = append(steps, Step{WriteHome, block, data})
	}
	clear(l.waiting)
	l.empty, l.used = true, 0
	return append(steps, Step{Kind: Flush}, l.superStep(0), Step{Kind: Flush})
}
