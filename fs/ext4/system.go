package ext4

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"loam/block"
	"loam/fs"
	"loam/fs/ext4/disk"
	"loam/fs/ext4/journal"
	"loam/fs/ext4/lookup"
	"loam/fs/ext4/span"
)

// Config has the options of Open. The zero Config selects the defaults.
type Config struct {
	ReadOnly   bool
	CacheBytes int              // size of the cache in bytes; 0: 64 MiB
	Interval   time.Duration    // time between automatic commits; 0: 5 seconds
	Now        func() time.Time // the clock; nil: time.Now
	// Discard enables discards of freed blocks, after the commit that freed them.
	Discard bool
	Number  fs.Device // number of the block device, for stat(2); zero: none
	// Report is called with events for the operator, for example that the file system became
	// read-only; nil: they are not reported.
	Report func(string)
}

// FileSystem is an open ext4 file system.
type FileSystem struct {
	config     Config
	device     device
	geometry   *disk.Geometry
	root       fs.Directory // set by Open
	cache      *cache
	known      lookup.Cache          // names and attributes for readers without mu; filled with mu held
	handles    lookup.Counts         // numbers of open handles
	pages      fs.PageTable[fileKey] // pages of mapped files
	hasIndexes bool                  // directories get an index when they grow

	readOnly string // why the file system is read-only; "" if it is writable. Set by Open, and by fail under mu

	mu         sync.RWMutex // guards the fields below: see the package comment
	running    *transaction
	committing *transaction // the transaction that is being committed; nil: none
	freeBlocks uint64
	delayed    map[uint32]span.Set // delayed blocks by inode, in order: see delay.go
	reserved   uint64              // number of blocks in the field delayed
	spans      int                 // number of ranges in the field delayed
	freeInodes uint32
	nameable   map[uint32]bool  // inodes without a name that may still get one (linkat)
	reaping    map[fileKey]bool // files without a name whose blocks are being freed: they cannot be opened any more
	orphans    []uint32         // inodes without a name, in the order of the list on disk
	dirty      map[*buffer]struct{}
	op         op     // the running op, or the last one
	spread     uint32 // group where the search for the next directory's group begins

	commitMu  sync.Mutex // taken before mu; guards the journal and all below
	journal   *journal.Log
	journalAt []run // location of the journal on the device

	growing   sync.Mutex  // held by Grow, and taken before all others
	unflushed atomic.Bool // a direct write has changed the device since the last flush

	stop   chan struct{} // closed by Close
	ended  chan struct{} // closed by loop when it ends
	closed bool
	failed bool // the device has failed, and uncommitted changes are lost. Guarded by mu
}

// superPlace returns the block with the superblock, and the superblock's offset in it.
func (s *FileSystem) superPlace() (number uint64, at int) {
	number = disk.SuperOffset >> s.geometry.BlockBits
	return number, disk.SuperOffset - int(number)<<s.geometry.BlockBits
}

// Open opens the file system on a device. The caller closes the device after Close. If the file
// system was not closed, its journal is recovered first; for a read-only file system this happens
// in memory.
func Open(d block.Device, c Config) (*FileSystem, error) {
	s, super, err := load(d, c)
	if err != nil {
		return nil, err
	}
	if err := s.recover(super); err != nil {
		return nil, err
	}
	if err := s.openWritable(); err != nil {
		return nil, err
	}
	return s, nil
}

// load reads and checks the superblock.
func load(d block.Device, c Config) (*FileSystem, disk.Super, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Interval == 0 {
		c.Interval = 5 * time.Second
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = 64 << 20
	}
	dev := device{io: block.NewIO(d)}
	first := make([]byte, 4096)
	if _, err := dev.io.ReadAt(first, 0); err != nil {
		return nil, nil, fmt.Errorf("the superblock cannot be read: %w", err)
	}
	super := disk.Super(first[disk.SuperOffset : disk.SuperOffset+disk.SuperSize])
	g, err := disk.ParseSuper(super)
	if err != nil {
		return nil, nil, err
	}
	dev.bits = g.BlockBits
	if err := g.Fits(dev.io.Size()); err != nil {
		return nil, nil, err
	}
	s := &FileSystem{
		config: c, device: dev, geometry: g, cache: newCache(max(64, c.CacheBytes>>g.BlockBits)),
		nameable: map[uint32]bool{}, reaping: map[fileKey]bool{}, delayed: map[uint32]span.Set{}, dirty: map[*buffer]struct{}{}, running: newTransaction(1),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	s.readOnly = super.ReadOnlyReason()
	s.hasIndexes = super.Compat()&disk.CompatDirIndex != 0 && disk.KnownHash(super.HashVersion())
	switch {
	case c.ReadOnly:
		s.readOnly = "it was opened for reading only"
	case s.readOnly == "" && d.Info().ReadOnly:
		s.readOnly = "its device is read-only"
	}
	return s, super, nil
}

// super returns the superblock for reading.
func (s *FileSystem) super() (disk.Super, error) {
	number, at := s.superPlace()
	b, err := s.image(number, disk.Structure{Kind: disk.KindSuper})
	if err != nil {
		return nil, err
	}
	return disk.Super(b[at : at+disk.SuperSize]), nil
}

// openWritable checks all descriptors, and prepares the file system for changes.
func (s *FileSystem) openWritable() error {
	for group := range s.geometry.Groups {
		d, err := s.checkDescriptor(group)
		if err != nil {
			return fmt.Errorf("the descriptor of group %d is damaged: run e2fsck", group)
		}
		s.freeBlocks += uint64(d.FreeBlocks())
		s.freeInodes += d.FreeInodes()
	}
	root, err := s.inode(disk.RootInode)
	if err != nil || fs.Mode(root.Mode()).Type() != fs.Dir || root.Links() == 0 {
		return errors.New("the root directory is damaged: run e2fsck")
	}
	s.root = directory{node{s, disk.RootInode, root.Generation()}}
	s.spread = rand.Uint32N(s.geometry.Groups)
	if s.readOnly != "" {
		close(s.ended)
		return nil
	}
	if err := s.begin(); err != nil {
		return err
	}
	go s.loop()
	return s.reapOrphans()
}

// ReadOnly returns the reason why the file system cannot be written, or "" if it can.
func (s *FileSystem) ReadOnly() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.readOnly
}

// Root implements fs.FileSystem.
func (s *FileSystem) Root() fs.Directory { return s.root }

// Usage implements fs.FileSystem.
func (s *FileSystem) Usage() fs.Usage {
	s.mu.RLock()
	defer s.mu.RUnlock()
	g := s.geometry
	overhead := uint64(g.Groups) * (2 + g.TableBlocks())
	return fs.Usage{
		Type: disk.Magic, BlockSize: int64(g.BlockSize), Blocks: g.Blocks - g.FirstData - min(overhead, g.Blocks-g.FirstData), BlocksFree: s.freeBlocks - min(s.freeBlocks, s.reserved),
		Files: uint64(g.Inodes), FilesFree: uint64(s.freeInodes), ReadOnly: s.readOnly != "", MaxNameLength: fs.MaxName,
	}
}

// Device implements fs.OnDevice.
func (s *FileSystem) Device() fs.Device { return s.config.Number }

// Sync implements fs.FileSystem.
func (s *FileSystem) Sync() error {
	flushed := s.pages.Flush()
	if err := s.commit(); err != nil {
		return err
	}
	return flushed
}

// now returns the current time, rounded to the granularity of times. So an fsync(2) after a write often needs no commit.
func (s *FileSystem) now() fs.Time {
	t := fs.Tick(s.config.Now())
	if s.geometry.InodeSize == 128 {
		t -= t % fs.Time(time.Second) // the inodes have no field for nanoseconds
	}
	return t
}

func (s *FileSystem) report(format string, args ...any) {
	if s.config.Report != nil {
		s.config.Report("ext4: " + fmt.Sprintf(format, args...))
	}
}

var (
	_ fs.Growable = (*FileSystem)(nil)
	_ fs.OnDevice = (*FileSystem)(nil)
)
