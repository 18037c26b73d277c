package disk

import (
	"fmt"
	"io"
)

// Summary describes a file system that is not open, from its superblock.
type Summary struct {
	Label     string
	UUID      [16]byte
	BlockSize int
	Blocks    uint64
	Features  string // names of features, as dumpe2fs(8) writes them
	// ReadOnly is the reason why the file system cannot be written; "" if it can.
	ReadOnly string
	Dirty    bool // the file system was not unmounted: its journal must be recovered
}

// Examine reads the superblock of a device or image of size bytes. Its error names the problem:
// no file system of ext4 (ErrNone), unsupported features, damage, or a device that is too small.
func Examine(r io.ReaderAt, size int64) (Summary, error) {
	b := make([]byte, SuperSize)
	if size < SuperOffset+SuperSize {
		return Summary{}, ErrNone
	}
	if _, err := r.ReadAt(b, SuperOffset); err != nil {
		return Summary{}, fmt.Errorf("the superblock cannot be read: %w", err)
	}
	super := Super(b)
	g, err := ParseSuper(super)
	if err != nil {
		return Summary{}, err
	}
	if err := g.Fits(size); err != nil {
		return Summary{}, err
	}
	s := Summary{
		Label: cString(super.Label()), BlockSize: g.BlockSize, Blocks: g.Blocks, Features: super.FeatureNames(),
		ReadOnly: super.ReadOnlyReason(), Dirty: super.Incompat()&IncompatRecover != 0,
	}
	copy(s.UUID[:], super.UUID())
	return s, nil
}

// Fits returns an error if a device of size bytes is too small for the file system.
func (g *Geometry) Fits(size int64) error {
	if int64(g.Blocks) <= size>>g.BlockBits {
		return nil
	}
	return fmt.Errorf("the device is too small: %d blocks of %d bytes are needed", g.Blocks, g.BlockSize)
}

// cString returns the text before the first zero byte.
func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
