package ninep

import (
	"slices"
	"strings"

	"loam/abi/linux"
	"loam/fs"
)

// mostXattr is the maximum size of a value in bytes, and of a list of names (XATTR_SIZE_MAX).
const mostXattr = 64 << 10

// xattr reads the value of an extended attribute. With an empty name, it reads the list of the attributes' names.
func (n *node) xattr(name string) ([]byte, error) {
	file, err := n.borrow(false)
	if err != nil {
		return nil, err
	}
	defer file.release()
	c := n.s.conn
	own := c.newFID()
	var size Size
	if err := c.call(TypeXattrWalk, &XattrWalk{file.fid, own, name}, &size); err != nil {
		c.dropFID(own)
		return nil, err
	}
	defer c.forget(own)
	if size.Size > mostXattr {
		return nil, linux.EIO
	}
	value := make([]byte, size.Size)
	done := 0
	for done < len(value) {
		k, err := n.s.readAt(own, value[done:], int64(done))
		if err != nil || k == 0 {
			return nil, errno(err)
		}
		done += k
	}
	return value, nil
}

// setXattr sets an extended attribute. With an empty value and the flag xattrReplace, it removes the attribute.
func (n *node) setXattr(name string, value []byte, flags uint32) error {
	file, err := n.borrow(false)
	if err != nil {
		return err
	}
	own, _, err := n.s.walk(file.fid, nil)
	file.release()
	if err != nil {
		return err
	}
	c := n.s.conn
	if err := c.call(TypeXattrCreate, &XattrCreate{own, name, uint64(len(value)), flags}, Empty{}); err != nil {
		c.forget(own)
		return err
	}
	if len(value) > 0 {
		if k, err := n.s.writeAt(own, value, 0); err != nil || k < len(value) {
			c.forget(own)
			return errno(err)
		}
	}
	err = c.call(TypeClunk, &OneFID{own}, Empty{}) // Clunk sets the attribute; the FID is freed even if this fails
	c.dropFID(own)
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	n.touch()
	n.guard = 0 // an access list changes the mode
	return err
}

// Flags of setxattr(2).
const (
	xattrCreate  = 1
	xattrReplace = 2
)

// Xattr implements fs.Attributed.
func (n *node) Xattr(name string) ([]byte, error) { return n.xattr(name) }

// SetXattr implements fs.Attributed.
func (n *node) SetXattr(name string, value []byte, flags fs.XattrFlags) error {
	var f uint32
	if flags&fs.XattrCreate != 0 {
		f |= xattrCreate
	}
	if flags&fs.XattrReplace != 0 {
		f |= xattrReplace
	}
	if len(value) == 0 && f == xattrReplace { // in the protocol, this would remove the attribute
		if _, err := n.xattr(name); err != nil {
			return err
		}
		f = 0
	}
	if len(value) > mostXattr {
		return linux.E2BIG
	}
	return n.setXattr(name, value, f)
}

// RemoveXattr implements fs.Attributed.
func (n *node) RemoveXattr(name string) error { return n.setXattr(name, nil, xattrReplace) }

// RemovesCapabilities implements fs.CapabilityRemover: the kernel of the server removes them.
func (n *node) RemovesCapabilities() {}

// Xattrs implements fs.Attributed.
func (n *node) Xattrs() []string {
	list, err := n.xattr("")
	if err != nil {
		return nil
	}
	all := strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00")
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	slices.Sort(all)
	return all
}
