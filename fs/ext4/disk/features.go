package disk

import (
	"fmt"
	"math/bits"
	"strings"
)

// Feature bits of the superblock ("The Super Block"). A file system with an unknown incompatible
// feature is refused. A file system with an unknown read-only compatible feature, or with a known
// one that cannot be written, is opened read-only.

// Compatible features that this package uses.
const (
	CompatJournal     = 0x4
	CompatExtAttr     = 0x8
	CompatResizeInode = 0x10
	CompatDirIndex    = 0x20
	CompatSparse2     = 0x200
	CompatOrphanFile  = 0x1000
)

// Incompatible features: a driver that does not know one must not mount the file system.
const (
	IncompatFileType   = 0x2
	IncompatRecover    = 0x4
	IncompatJournalDev = 0x8
	IncompatMetaBG     = 0x10
	IncompatExtents    = 0x40
	Incompat64Bit      = 0x80
	IncompatFlexBG     = 0x200
	IncompatCsumSeed   = 0x2000
	IncompatLargeDir   = 0x4000
	IncompatInlineData = 0x8000

	incompatKnown = IncompatFileType | IncompatRecover | IncompatMetaBG | IncompatExtents | Incompat64Bit |
		IncompatFlexBG | IncompatCsumSeed | IncompatLargeDir | IncompatInlineData
)

// Read-only compatible features: a driver that does not know one may only mount the file system read-only.
const (
	ROCompatSparseSuper   = 0x1
	ROCompatLargeFile     = 0x2
	ROCompatHugeFile      = 0x8
	ROCompatGroupCsum     = 0x10
	ROCompatDirNlink      = 0x20
	ROCompatExtraIsize    = 0x40
	ROCompatBigalloc      = 0x200
	ROCompatMetadataCsum  = 0x400
	ROCompatReadOnly      = 0x1000
	ROCompatOrphanPresent = 0x10000

	roCompatWritten = ROCompatSparseSuper | ROCompatLargeFile | ROCompatHugeFile | ROCompatGroupCsum | ROCompatDirNlink |
		ROCompatExtraIsize | ROCompatMetadataCsum | ROCompatOrphanPresent
)

// compatNames, incompatNames and roCompatNames are the names of features by bit, as mke2fs(8) and
// dumpe2fs(8) write them.
var (
	compatNames = map[int]string{
		0: "dir_prealloc", 1: "imagic_inodes", 2: "has_journal", 3: "ext_attr", 4: "resize_inode", 5: "dir_index", 6: "lazy_bg",
		8: "snapshot_bitmap", 9: "sparse_super2", 10: "fast_commit", 11: "stable_inodes", 12: "orphan_file",
	}
	incompatNames = map[int]string{
		0: "compression", 1: "filetype", 2: "needs_recovery", 3: "journal_dev", 4: "meta_bg", 6: "extent", 7: "64bit", 8: "mmp",
		9: "flex_bg", 10: "ea_inode", 12: "dirdata", 13: "metadata_csum_seed", 14: "large_dir", 15: "inline_data",
		16: "encrypt", 17: "casefold",
	}
	roCompatNames = map[int]string{
		0: "sparse_super", 1: "large_file", 2: "btree_dir", 3: "huge_file", 4: "uninit_bg", 5: "dir_nlink", 6: "extra_isize", 7: "snapshot",
		8: "quota", 9: "bigalloc", 10: "metadata_csum", 11: "replica", 12: "read-only", 13: "project", 14: "shared_blocks",
		15: "verity", 16: "orphan_present",
	}
)

// featureNames lists the features in a set of bits.
func featureNames(set uint32, names map[int]string) string {
	var all []string
	for ; set != 0; set &= set - 1 {
		bit := bits.TrailingZeros32(set)
		name := names[bit]
		if name == "" {
			name = fmt.Sprintf("bit %d", bit)
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

// FeatureNames returns the names of all features, separated by commas.
func (s Super) FeatureNames() string {
	var all []string
	for _, names := range []string{featureNames(s.Compat(), compatNames), featureNames(s.Incompat(), incompatNames), featureNames(s.ROCompat(), roCompatNames)} {
		if names != "" {
			all = append(all, names)
		}
	}
	return strings.Join(all, ", ")
}

// Unsupported returns an error that names the features that prevent even reading the file system;
// nil if there are none.
func (s Super) Unsupported() error {
	if unknown := s.Incompat() &^ incompatKnown; unknown != 0 {
		return fmt.Errorf("unsupported features: %s", featureNames(unknown, incompatNames))
	}
	return nil
}

// ReadOnlyReason returns the reason why a file system can be read but not written, or "" if it can
// be written.
func (s Super) ReadOnlyReason() string {
	ro := s.ROCompat() &^ roCompatWritten
	switch {
	case ro != 0:
		return "features that are only read: " + featureNames(ro, roCompatNames)
	case s.Incompat()&IncompatInlineData != 0:
		return "features that are only read: inline_data"
	case s.Incompat()&IncompatExtents == 0:
		return "it has no extents"
	case s.State()&StateErrors != 0:
		return "it is marked as damaged: run e2fsck"
	}
	return ""
}
