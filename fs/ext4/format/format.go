// Package format makes an empty ext4 file system on a device. It enables the features that
// mke2fs(8) of e2fsprogs 1.47 enables by default, so every Linux can mount it.
//
// Read in this order: format.go (parameters), layout.go (positions), write.go (contents).
package format

import (
	"crypto/rand"
	"fmt"
	"time"

	"loam/block"
	"loam/fs/ext4/disk"
)

// Config describes the file system to make. The zero Config selects the defaults.
type Config struct {
	BlockSize  int       // bytes, 1 to 64 KiB; 0: 4096, or 1024 below 64 MiB
	InodeRatio int       // bytes of the device for each inode; 0: 16384, or 8192 below 512 MiB
	Inodes     uint32    // minimum number of inodes; 0: determined by InodeRatio
	Journal    int64     // size in bytes; 0: depends on the size of the device
	Label      string    // name of the file system, at most 16 bytes
	UUID       [16]byte  // identifier of the file system; zero: a random one
	Seed       [16]byte  // seed of the hash of names in directories; zero: a random one
	Now        time.Time // time of the creation; zero: now
	UID, GID   uint32    // owner of the root directory
	Reserved   int       // percentage of blocks reserved for the superuser; 0: none
}

// MinSize is the smallest device in bytes.
const MinSize = 4 << 20

// maxSize is the size of the largest device in bytes: 16 TiB. The blocks reserved for descriptors
// cannot describe a larger one.
const maxSize = 1 << 44

// Features of a new file system.
const (
	compat = disk.CompatJournal | disk.CompatExtAttr | disk.CompatResizeInode | disk.CompatDirIndex

	incompat = disk.IncompatFileType | disk.IncompatExtents | disk.Incompat64Bit | disk.IncompatFlexBG

	roCompat = disk.ROCompatSparseSuper | disk.ROCompatLargeFile | disk.ROCompatHugeFile | disk.ROCompatDirNlink |
		disk.ROCompatExtraIsize | disk.ROCompatMetadataCsum
)

// Sizes that Config does not change.
const (
	inodeSize = 256
	descSize  = 64
	extraSize = 32 // bytes of fields after the first 128 bytes of an inode
	flexShift = 4  // the bitmaps and tables of 16 groups are stored together
	lostInode = 11 // inode number of lost+found
)

// Write makes a file system, and discards the old contents of the device. When it returns, the file
// system is durable.
func Write(d block.Device, c Config) error {
	if d.Info().ReadOnly {
		return block.ErrReadOnly
	}
	if err := c.complete(d.Size()); err != nil {
		return err
	}
	w, err := newWriter(d, c)
	if err != nil {
		return err
	}
	return w.write()
}

// complete sets defaults.
func (c *Config) complete(size int64) error {
	switch {
	case size < MinSize:
		return fmt.Errorf("%d bytes are too few for a file system with a journal: give it at least %d MiB", size, MinSize>>20)
	case size > maxSize:
		return fmt.Errorf("%d bytes are too many: give it at most %d TiB", size, int64(maxSize)>>40)
	case len(c.Label) > 16:
		return fmt.Errorf("the label %q has more than 16 bytes", c.Label)
	}
	if c.BlockSize == 0 {
		c.BlockSize = 4096
		if size < 64<<20 {
			c.BlockSize = 1024
		}
	}
	if c.BlockSize < 1024 || c.BlockSize > 64<<10 || c.BlockSize&(c.BlockSize-1) != 0 {
		return fmt.Errorf("blocks cannot have %d bytes: use a power of two from 1024 to 65536", c.BlockSize)
	}
	if size/int64(c.BlockSize) < 2048 {
		return fmt.Errorf("%d blocks of %d bytes are too few for a journal: use smaller blocks, or a larger image", size/int64(c.BlockSize), c.BlockSize)
	}
	if c.InodeRatio == 0 {
		c.InodeRatio = 16384
		if size < 512<<20 {
			c.InodeRatio = 8192
		}
	}
	c.InodeRatio = max(c.InodeRatio, c.BlockSize, 1024)
	if c.Now.IsZero() {
		c.Now = time.Now()
	}
	if c.UUID == [16]byte{} {
		c.UUID = newUUID()
	}
	if c.Seed == [16]byte{} {
		c.Seed = newUUID()
	}
	return nil
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() (u [16]byte) {
	rand.Read(u[:])
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

// journalBlocks returns the length of the journal in blocks, as mke2fs(8) chooses it except for
// very large devices.
func (c *Config) journalBlocks(blocks, perGroup uint64) uint64 {
	most := min(1<<16, 3*perGroup)
	if c.Journal > 0 {
		return min(max(uint64(c.Journal)/uint64(c.BlockSize), 1024), most, blocks/2)
	}
	n := uint64(1024)
	for _, step := range []struct{ blocks, journal uint64 }{
		{32 << 10, 4096}, {256 << 10, 8192}, {512 << 10, 16384}, {4 << 20, 32768}, {8 << 20, 65536},
	} {
		if blocks >= step.blocks {
			n = step.journal
		}
	}
	return min(n, most)
}
