package ext4

import (
	"fmt"

	"loam/fs/ext4/disk"
	"loam/fs/ext4/journal"
)

// recover opens the journal, after recovering it. If the file system is opened read-only, the
// recovered blocks stay in memory.
func (s *FileSystem) recover(super disk.Super) error {
	if super.Compat()&disk.CompatJournal == 0 {
		return nil
	}
	c, err := s.findJournal(super)
	if err != nil {
		return fmt.Errorf("the journal cannot be read: %w", err)
	}
	if super.Incompat()&disk.IncompatRecover != 0 {
		if c.Super, err = s.replay(c); err != nil {
			return err
		}
		if err := s.reload(); err != nil {
			return err
		}
	}
	if s.readOnly != "" {
		return nil
	}
	s.journal, err = journal.Open(c)
	return err
}

// findJournal locates the journal, and reads its superblock.
func (s *FileSystem) findJournal(super disk.Super) (journal.Config, error) {
	g := s.geometry
	c := journal.Config{
		BlockSize: g.BlockSize, Wide: super.Incompat()&disk.Incompat64Bit != 0, Checksums: g.Sums.Metadata(),
	}
	ino := super.JournalInode()
	i, err := s.inode(ino)
	if err != nil {
		return c, err
	}
	length := i.Size() >> g.BlockBits
	if length > 1<<31 || length == 0 || length > g.Blocks {
		return c, errDamaged
	}
	for at := uint64(0); at < length; {
		r, err := s.find(ino, i, at)
		if err != nil {
			return c, err
		}
		if r.zeros() {
			return c, errDamaged
		}
		r.length = min(r.length, length-at)
		s.journalAt = append(s.journalAt, r)
		at += r.length
	}
	c.Length = uint32(length)
	c.Super, err = s.readLog(0)
	return c, err
}

// logBlock returns the block on the device that holds a block of the log.
func (s *FileSystem) logBlock(at uint32) (uint64, error) {
	for _, r := range s.journalAt {
		if uint64(at) < r.logical+r.length {
			return r.physical + uint64(at) - r.logical, nil
		}
	}
	return 0, errDamaged
}

func (s *FileSystem) readLog(at uint32) ([]byte, error) {
	number, err := s.logBlock(at)
	if err != nil {
		return nil, err
	}
	b := make([]byte, s.geometry.BlockSize)
	return b, s.device.read(number, b)
}

// replay applies the transactions in the journal, and returns its new superblock.
func (s *FileSystem) replay(c journal.Config) ([]byte, error) {
	images := map[uint64][]byte{} // the newest image of each block
	r, err := journal.Recover(c, s.readLog, func(number uint64, data []byte) error {
		if number >= uint64(s.device.io.Size())>>s.geometry.BlockBits { // the geometry may be older than the journal
			return errDamaged
		}
		images[number] = append([]byte(nil), data...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if s.readOnly != "" {
		for number, data := range images {
			s.cache.drop(number, 1)
			s.cache.add(&buffer{number: number, data: data, logged: true})
		}
		return r.Super, nil
	}
	var all []journal.Image
	for number, data := range images {
		s.cache.drop(number, 1)
		all = append(all, journal.Image{Block: number, Data: data})
	}
	if err := s.writeDurably(all); err != nil {
		return nil, err
	}
	if r.Transactions > 0 {
		s.report("recovered %d transactions of the journal", r.Transactions)
	}
	return r.Super, s.writeRecovered(r.Super)
}

// writeRecovered empties the journal, and then marks the file system as recovered.
func (s *FileSystem) writeRecovered(log []byte) error {
	number, err := s.logBlock(0)
	if err == nil {
		err = s.device.write(number, log)
	}
	if err == nil {
		err = s.device.io.Flush()
	}
	if err != nil {
		return err
	}
	super, err := s.super()
	if err != nil {
		return err
	}
	super = append(disk.Super(nil), super...)
	super.SetIncompat(super.Incompat() &^ disk.IncompatRecover)
	return s.writeSuper(super)
}
