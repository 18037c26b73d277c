package journal

import "bytes"

// Config describes a log that is opened.
type Config struct {
	Super     []byte // block 0 of the log; it is copied
	BlockSize int    // of the file system, and of the log
	Length    uint32 // blocks that the log's file has
	Wide      bool   // block numbers may exceed 32 bits
	Checksums bool   // the file system has metadata_csum
}

// StepKind says what a Step does.
type StepKind uint8

// Kinds of steps.
const (
	WriteLog  StepKind = iota // a block of the log: Block counts from its start
	WriteHome                 // a block of the device
	Flush                     // everything before is durable before anything behind begins
)

// Step is a write or a barrier. Data is not changed later, by either side.
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

// Transaction is a set of changes that become durable together.
type Transaction struct {
	Images  []Image
	Revoked []uint64 // blocks that were freed, or became data
	// Seconds and Nanoseconds are the time of the commit since 1970.
	Seconds     uint64
	Nanoseconds uint32
}

// Log is a journal. It belongs to one goroutine at a time.
type Log struct {
	layout
	super    []byte
	first    uint32 // the ring's first block
	length   uint32 // blocks behind the ring's last
	head     uint32 // where the next transaction goes
	used     uint32 // blocks between tail and head
	sequence uint32 // of the next transaction
	empty    bool   // on disk: nothing is to be recovered
	waiting  map[uint64][]byte
}

// Open checks the superblock of a log that has been recovered, or needs no
// recovery. Errors: ErrDamaged, ErrUnsupported.
func Open(c Config) (*Log, error) {
	if err := checkSuper(c); err != nil {
		return nil, err
	}
	super := bytes.Clone(c.Super)
	if be.Uint32(super[0x1c:]) != 0 {
		return nil, ErrDamaged // to be recovered
	}
	be.PutUint32(super[4:], typeSuper2)
	features := be.Uint32(super[0x28:])&^(featureSum2|featureSum3|feature64|featureFastCommit|featureAsync) | featureRevoke
	if c.Wide {
		features |= feature64
	}
	if c.Checksums {
		features |= featureSum3
		super[0x50] = 4 // crc32c
	}
	be.PutUint32(super[0x24:], be.Uint32(super[0x24:])&^1) // no checksums of version 1
	be.PutUint32(super[0x28:], features)
	l := &Log{
		layout: newLayout(super, c.BlockSize), super: super, first: be.Uint32(super[0x14:]),
		length: min(be.Uint32(super[0x10:]), c.Length), sequence: be.Uint32(super[0x18:]) + 1,
		empty: true, waiting: map[uint64][]byte{},
	}
	l.head = l.first
	return l, nil
}

// Init makes block 0 of an empty log of blocks blocks. uuid is the UUID of the file system.
func Init(b []byte, blocks uint32, uuid [16]byte) {
	clear(b)
	putHead(b, typeSuper2, 0)
	be.PutUint32(b[0xc:], uint32(len(b)))
	be.PutUint32(b[0x10:], blocks)
	be.PutUint32(b[0x14:], 1) // first block of the ring
	be.PutUint32(b[0x18:], 1) // first sequence number
	copy(b[0x30:], uuid[:])
	be.PutUint32(b[0x40:], 1) // users
}

// checkSuper checks what Open and Recover rely on.
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

// Capacity is the largest number of images and revocations together that one
// transaction may have so that it fits an empty log.
func (l *Log) Capacity() int {
	n := int(l.length - l.first)
	return n - n/16 - 8
}

// Used is the share of the log that is not checkpointed, in percent.
func (l *Log) Used() int { return int(uint64(l.used) * 100 / uint64(l.length-l.first)) }

// perBlock is the number of tags, and of revocations, in a block.
func (l *Log) perBlock() (tags, revoked int) {
	size := 4
	if l.wide {
		size = 8
	}
	return (l.end() - headSize - 16) / l.tagSize(), (l.end() - revokeHead) / size
}

// need is the number of blocks of the log that a transaction takes.
func (l *Log) need(t *Transaction) int {
	tags, revoked := l.perBlock()
	return len(t.Images) + (len(t.Images)+tags-1)/tags + (len(t.Revoked)+revoked-1)/revoked + 1
}

// Fits reports whether there is room for a transaction. If not, Checkpoint makes some.
func (l *Log) Fits(t *Transaction) bool { return l.need(t) <= int(l.length-l.first-l.used) }

// Commit appends a transaction. The writes of its files' data come before the steps that
// are returned. It counts as committed from now on: a caller that cannot carry out the
// steps gives up the file system. Errors: ErrFull.
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

// place is a step that writes the next block of the ring.
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

// superStep writes the superblock: the log begins at tail, or is empty if that is 0.
func (l *Log) superStep(tail uint32) Step {
	be.PutUint32(l.super[0x18:], l.sequence)
	be.PutUint32(l.super[0x1c:], tail)
	if l.sums > 0 {
		be.PutUint32(l.super[0xfc:], superSum(l.super))
	}
	return Step{WriteLog, 0, bytes.Clone(l.super)}
}

// Waiting is the newest committed image of a block that is not at home; nil if there is none.
func (l *Log) Waiting(block uint64) []byte { return l.waiting[block] }

// Checkpoint writes home everything that is committed, and empties the log.
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
