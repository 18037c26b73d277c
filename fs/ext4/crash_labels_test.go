package ext4_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/acl"
)

// The labels of a file are its type, mode, extended attributes and access control lists. Each operation on labels is one transaction,
// and the journal commits transactions in order. So the labels of all files after a power failure are those after one of the
// operations: no file has a part of a list, and a whiteout exists if and only if the file has its new name.

// labels makes random changes of the labels of a few files, and records the labels after each operation.
type labels struct {
	v       *fs.View
	rnd     *rand.Rand
	made    int      // number of operations
	history []string // labels of all files: at first, and after each successful operation
}

// labelDirs are the directories of the files with labels, and labelFiles the number of files in each.
var labelDirs = []string{"/p", "/q"}

const labelFiles = 4

func newLabels(v *fs.View, rnd *rand.Rand) *labels {
	return &labels{v: v, rnd: rnd, history: []string{labelsOf(v)}}
}

// labelsOf returns the labels of all files, one file in a line.
func labelsOf(v *fs.View) string {
	var b strings.Builder
	for _, dir := range labelDirs {
		describe(&b, v, dir)
		for i := range labelFiles {
			describe(&b, v, fmt.Sprintf("%s/%d", dir, i))
		}
	}
	return b.String()
}

// describe writes a line with the labels of a file. A file that does not exist has no line.
func describe(b *strings.Builder, v *fs.View, path string) {
	p, err := v.Lookup(v.Root, path, false)
	if err == linux.ENOENT {
		return
	}
	if err != nil {
		fmt.Fprintf(b, "%s: %v\n", path, err)
		return
	}
	a := p.Node.Attr()
	fmt.Fprintf(b, "%s: mode %o device %v links %d", path, a.Mode, a.Device, a.Links)
	names := v.Xattrs(p)
	slices.Sort(names)
	for _, name := range names {
		value, err := v.Xattr(p, name)
		fmt.Fprintf(b, ", %s %d bytes %08x %v", name, len(value), crc32.ChecksumIEEE(value), err)
	}
	b.WriteByte('\n')
}

// change makes some operations. It returns true if the last one is durable.
func (l *labels) change(t *testing.T) (durable bool) {
	for range 1 + l.rnd.IntN(4) {
		path := l.path()
		err := l.one(path)
		if err == nil {
			l.made++
			l.history = append(l.history, labelsOf(l.v))
		}
		if !slices.Contains([]error{nil, linux.ENOENT, linux.EEXIST, linux.ENODATA, linux.EACCES, linux.EPERM, linux.EISDIR,
			linux.ENOTDIR, linux.ENOTEMPTY, linux.EINVAL}, err) {
			t.Fatal(err)
		}
	}
	return l.rnd.IntN(3) == 0 && l.sync(t, l.path())
}

func (l *labels) dir() string { return labelDirs[l.rnd.IntN(len(labelDirs))] }

func (l *labels) path() string { return fmt.Sprintf("%s/%d", l.dir(), l.rnd.IntN(labelFiles)) }

// one makes one operation.
func (l *labels) one(path string) error {
	v, rnd := l.v, l.rnd
	switch rnd.IntN(16) {
	case 0:
		return v.Mkdir(v.Root, l.dir(), 0o755)
	case 1, 2, 3:
		f, err := v.Open(v.Root, path, fs.WriteOnly|fs.Create|fs.Exclusive, 0o664)
		if err == nil {
			err = f.Close()
		}
		return err
	case 4:
		return v.Mkdir(v.Root, path, 0o775)
	case 5:
		return v.Unlink(v.Root, path)
	case 6:
		return v.Rmdir(v.Root, path)
	case 7:
		return v.Rename(v.Root, path, v.Root, l.path(), 0)
	case 8, 9:
		return v.Rename(v.Root, path, v.Root, l.path(), fs.RenameWhiteout)
	}
	if rnd.IntN(4) == 0 {
		path = l.dir()
	}
	p, err := v.Lookup(v.Root, path, false)
	if err != nil {
		return err
	}
	return l.label(p)
}

// label changes the labels of a file.
func (l *labels) label(p fs.Place) error {
	v, rnd := l.v, l.rnd
	lists := []string{acl.Access, acl.Default}
	list := aclOf(uint16(rnd.IntN(8)), rnd.IntN(3)*rnd.IntN(10))
	switch rnd.IntN(9) {
	case 0, 1:
		return v.SetXattr(p, acl.Access, list, 0)
	case 2, 3:
		return v.SetXattr(p, acl.Default, list, 0)
	case 4:
		return v.RemoveXattr(p, lists[rnd.IntN(2)])
	case 5:
		return v.Change(p, fs.Change{Fields: fs.SetMode, Mode: fs.Mode(rnd.IntN(0o1000))})
	case 6:
		return v.SetXattr(p, "user.small", fmt.Appendf(nil, "%d", l.made), 0)
	case 7:
		return v.SetXattr(p, "user.large", bytes.Repeat(fmt.Appendf(nil, "%04d", l.made), 30+rnd.IntN(80)), 0)
	default:
		return v.RemoveXattr(p, []string{"user.small", "user.large"}[rnd.IntN(2)])
	}
}

// sync sets an attribute of a regular file, and calls fsync. It returns false if there is no such file.
func (l *labels) sync(t *testing.T, path string) bool {
	f, err := l.v.Open(l.v.Root, path, fs.WriteOnly, 0)
	if err != nil {
		return false
	}
	l.made++
	must(t, l.v.SetXattr(f.Place(), "user.small", fmt.Appendf(nil, "%d", l.made), 0))
	l.history = append(l.history, labelsOf(l.v))
	must(t, errors.Join(f.Sync(), f.Close()))
	return true
}

// check fails the test unless the labels on a recovered disk are those after one of the operations, and not older than the
// labels that are durable.
func (l *labels) check(t *testing.T, v *fs.View, durable int, where string) {
	t.Helper()
	got := labelsOf(v)
	if !slices.Contains(l.history[durable:], got) {
		t.Fatalf("%s: the labels are those of no operation since %d of %d, which is durable:\n%s\nthey were\n%s",
			where, durable, len(l.history)-1, got, l.history[durable])
	}
}
