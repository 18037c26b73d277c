package ext4

import (
	"fmt"
	"io"

	"loam/fs/ext4/disk"
)

// ErrNone is returned by Examine for something that is no ext4 file system.
var ErrNone = disk.ErrNone

// Summary describes a file system that is not open, by its superblock.
type Summary struct {
	Label     string
	UUID      [16]byte
	BlockSize int
	Blocks    uint64
	Features  string // names, as dumpe2fs(8) writes them
	// ReadOnly says why the file system cannot be written; "" if it can.
	ReadOnly string
	Dirty    bool // it was not unmounted: its journal is to be recovered
}

// Examine reads the superblock of a device or image of size bytes. Errors say what is wrong: ErrNone, features
// that are not supported, damage, a device that is too small.
func Examine(r io.ReaderAt, size int64) (Summary, error) {
	b := make([]byte, disk.SuperSize)
	if size < disk.SuperOffset+disk.SuperSize {
		return Summary{}, ErrNone
	}
	if _, err := r.ReadAt(b, disk.SuperOffset); err != nil {
		return Summary{}, fmt.Errorf("the superblock cannot be read: %w", err)
	}
	super := disk.Super(b)
	g, err := disk.ParseSuper(super)
	if err != nil {
		return Summary{}, err
	}
	if int64(g.Blocks) > size>>g.BlockBits {
		return Summary{}, tooSmall(g)
	}
	s := Summary{
		Label: cString(super.Label()), BlockSize: g.BlockSize, Blocks: g.Blocks, Features: super.FeatureNames(),
		ReadOnly: super.ReadOnlyReason(), Dirty: super.Incompat()&disk.IncompatRecover != 0,
	}
	copy(s.UUID[:], super.UUID())
	return s, nil
}

func tooSmall(g *disk.Geometry) error {
	return fmt.Errorf("the device is too small: %d blocks of %d bytes are needed", g.Blocks, g.BlockSize)
}

// cString is the text before the first zero byte.
func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
