package ext4

import (
	"loam/fs"
	"loam/fs/ext4/disk"
)

// MakeNameless implements fs.NamelessMaker (O_TMPFILE). The file is an orphan until it gets a name:
// if it has no name at a crash, recovery removes it.
func (s *FileSystem) MakeNameless(mode fs.Mode, owner fs.Owner, use fs.NamelessUse) (fs.Node, error) {
	var made fs.Node
	err := s.update(func(o *op) error {
		ino, i, err := o.newInode(disk.RootInode, fs.Regular|mode&fs.Permissions, owner)
		if err != nil {
			return err
		}
		if use == fs.ToName {
			s.nameable[ino] = true
			o.undo = append(o.undo, func() { delete(s.nameable, ino) })
		}
		made = s.nodeOf(ino, i)
		return o.addOrphan(ino, i)
	})
	return made, err
}
