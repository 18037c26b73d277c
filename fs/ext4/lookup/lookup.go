// Package lookup caches names and attributes of files for readers that take no lock. It also counts open files, for callers
// that do not take the lock of the file system.
//
// A hit costs a hash, an atomic load and a comparison. It writes nothing to memory, so readers on several CPUs do not slow each
// other down. A new entry replaces the entry with which it shares a slot; nothing else limits or orders the entries.
//
// # Consistency
//
// The owner has a lock that excludes changes from reads. It adds an entry while it holds the lock for reading, and forgets or
// replaces an entry while it holds the lock for writing: it forgets at any time during the change, and adds the new state at its
// end. So an entry that was read before a change is never added after it. A reader without the lock may see the state before a
// change that runs at the same time, but not after the change has returned.
package lookup

import (
	"errors"
	"hash/maphash"
	"strings"
	"sync/atomic"

	"loam/abi/linux"
	"loam/fs"
)

// slots is the number of entries of each kind.
const (
	slots    = 1 << slotBits
	slotBits = 13
)

// File identifies a file: an inode number and its generation.
type File struct{ Inode, Generation uint32 }

// Cache holds names and attributes. The zero Cache is empty.
type Cache struct {
	names table[name]
	attrs table[attributes]
}

// table is created when the first entry is added.
type table[T any] struct {
	slots atomic.Pointer[[slots]atomic.Pointer[T]]
}

// name is the result of looking up a name in a directory. It is never modified.
type name struct {
	in   File
	name string
	file fs.Node // nil: the name does not exist
}

// attributes are the attributes of a file. They are never modified.
type attributes struct {
	of   File
	attr fs.Attr
}

// seed is the seed of all hashes.
var seed = maphash.MakeSeed()

// spread returns a value for an inode. Its upper bits differ for nearby inodes, and for inodes at the same place in their block
// groups (Fibonacci hashing).
func spread(inode uint32) uint64 { return uint64(inode) * 0x9e3779b97f4a7c15 }

// slotOf returns the slot of a name.
func slotOf(in File, text string) uint64 {
	return (maphash.String(seed, text) ^ spread(in.Inode)) >> (64 - slotBits)
}

// slotOfInode returns the slot of the attributes of an inode.
func slotOfInode(inode uint32) uint64 { return spread(inode) >> (64 - slotBits) }

func (t *table[T]) load(slot uint64) *T {
	if all := t.slots.Load(); all != nil {
		return all[slot].Load()
	}
	return nil
}

func (t *table[T]) store(slot uint64, entry *T) {
	all := t.slots.Load()
	if all == nil {
		t.slots.CompareAndSwap(nil, new([slots]atomic.Pointer[T]))
		all = t.slots.Load()
	}
	all[slot].Store(entry)
}

// forget removes the entry in a slot. It may belong to another file or name, which is then looked up again.
func (t *table[T]) forget(slot uint64) {
	if all := t.slots.Load(); all != nil {
		all[slot].Store(nil)
	}
}

// ErrUnknown is the error for a name that is not in the cache.
var ErrUnknown = errors.New("lookup: the name is not in the cache")

// Name returns the file at a name in a directory. Errors: ENOENT if the name does not exist, ErrUnknown.
func (c *Cache) Name(in File, text string) (fs.Node, error) {
	n := c.names.load(slotOf(in, text))
	switch {
	case n == nil || n.in != in || n.name != text:
		return nil, ErrUnknown
	case n.file == nil:
		return nil, linux.ENOENT
	}
	return n.file, nil
}

// AddName adds the result of a lookup; file is nil if the name does not exist.
func (c *Cache) AddName(in File, text string, file fs.Node) {
	c.names.store(slotOf(in, text), &name{in, strings.Clone(text), file}) // the text may be a part of a long path
}

// ForgetName removes a name.
func (c *Cache) ForgetName(in File, text string) { c.names.forget(slotOf(in, text)) }

// Attr returns the attributes of a file. known is false if the cache has no entry.
func (c *Cache) Attr(of File) (a fs.Attr, known bool) {
	e := c.attrs.load(slotOfInode(of.Inode))
	if e == nil || e.of != of {
		return fs.Attr{}, false
	}
	return e.attr, true
}

// Linked reports whether the attributes of a file are in the cache and the file has a name.
func (c *Cache) Linked(of File) bool {
	e := c.attrs.load(slotOfInode(of.Inode))
	return e != nil && e.of == of && e.attr.Links > 0
}

// AddAttr adds the attributes of a file, and returns them.
func (c *Cache) AddAttr(of File, a fs.Attr) fs.Attr {
	c.attrs.store(slotOfInode(of.Inode), &attributes{of, a})
	return a
}

// ForgetAttr removes the attributes of the file with an inode number.
func (c *Cache) ForgetAttr(inode uint32) { c.attrs.forget(slotOfInode(inode)) }
