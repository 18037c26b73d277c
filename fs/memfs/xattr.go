package memfs

import (
	"bytes"
	"maps"
	"slices"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/acl"
)

// xattrs are the extended attributes of a file, except its access control lists, which are in node.attr. Attributes and lists are
// accounted in whole pages, together with the content.
type xattrs struct {
	values map[string][]byte
	size   int64 // total length of names, values and lists, in bytes
	gone   bool  // the file is removed: its attributes are not accounted, and none can be set
}

// xattrPages returns the number of pages for a size in bytes.
func xattrPages(size int64) int64 { return (size + pageSize - 1) / pageSize }

// Xattr implements fs.Attributed.
func (n *node) Xattr(name string) ([]byte, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if value, ok := n.xattrs.values[name]; ok {
		return value, nil
	}
	return nil, linux.ENODATA
}

// Xattrs implements fs.Attributed.
func (n *node) Xattrs() []string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return slices.Sorted(maps.Keys(n.xattrs.values))
}

// SetXattr implements fs.Attributed.
func (n *node) SetXattr(name string, value []byte, flags fs.XattrFlags) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	old, there := n.xattrs.values[name]
	switch {
	case n.xattrs.gone:
		return linux.ENOENT
	case there && flags&fs.XattrCreate != 0:
		return linux.EEXIST
	case !there && flags&fs.XattrReplace != 0:
		return linux.ENODATA
	}
	more := int64(len(value) - len(old))
	if !there {
		more += int64(len(name))
	}
	if err := n.resizeXattrs(n.xattrs.size + more); err != nil {
		return err
	}
	if n.xattrs.values == nil {
		n.xattrs.values = map[string][]byte{}
	}
	n.xattrs.values[name] = bytes.Clone(value)
	n.attr.Status = n.system.now()
	return nil
}

// RemoveXattr implements fs.Attributed.
func (n *node) RemoveXattr(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	value, there := n.xattrs.values[name]
	if !there {
		return linux.ENODATA
	}
	delete(n.xattrs.values, name)
	n.attr.Status = n.system.now()
	if n.xattrs.gone {
		return nil
	}
	return n.resizeXattrs(n.xattrs.size - int64(len(name)+len(value)))
}

// resizeXattrs accounts for a new size. The caller holds mu. Errors: ENOSPC.
func (n *node) resizeXattrs(size int64) error {
	if err := n.system.takePages(xattrPages(size) - xattrPages(n.xattrs.size)); err != nil {
		return err
	}
	n.xattrs.size = size
	return nil
}

// dropXattrs returns the space of the attributes of a removed file. The caller holds mu.
func (n *node) dropXattrs() {
	n.resizeXattrs(0) // shrinking does not fail
	n.xattrs.gone = true
}

// StoresLists implements fs.Controlled.
func (n *node) StoresLists() {}

// listSize returns the number of bytes of lists that are accounted.
func listSize(s acl.Set) int64 {
	lists := s.Lists()
	return int64(len(lists.Access) + len(lists.Default))
}

// takeLists accounts for the lists of a new file. It does not fail: the file shares their memory with the directory.
func (n *node) takeLists() {
	n.xattrs.size = listSize(n.attr.ACL)
	n.system.pages.Add(xattrPages(n.xattrs.size))
}

// protect sets the mode and the lists that a change gives the file. The caller holds mu. Errors: ENOSPC; ENOENT for a removed file.
func (n *node) protect(c fs.Change) error {
	mode, lists := c.Protection(n.attr.Mode, n.attr.ACL)
	if more := listSize(lists) - listSize(n.attr.ACL); more != 0 {
		if n.xattrs.gone {
			return linux.ENOENT
		}
		if err := n.resizeXattrs(n.xattrs.size + more); err != nil {
			return err
		}
	}
	n.attr.Mode, n.attr.ACL = mode, lists
	return nil
}
