package tarfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"syscall"

	"loam/abi/linux"
)

// Packed is the result of Pack.
type Packed struct {
	Files int   // number of files of any type
	Bytes int64 // bytes of content
	// Skipped counts the files that were left out: sockets, devices, unreadable files, and files that
	// were removed or replaced during packing.
	Skipped int
}

// Pack writes the directory dir as an archive. If dir is a file, the archive's root contains only this
// file. Symbolic links are kept, wherever they lead. Directories of version control systems are left
// out.
func Pack(w io.Writer, dir string) (Packed, error) {
	p := &packer{archive: tar.NewWriter(w)}
	if err := p.tree(dir, ""); err != nil {
		return p.packed, err
	}
	return p.packed, p.archive.Close()
}

// PackRoot writes a directory as the root directory of another system. Unlike Pack, it keeps directories of version control
// systems, hard links, and the capabilities of files.
func PackRoot(w io.Writer, dir string) (Packed, error) {
	p := &packer{archive: tar.NewWriter(w), names: map[inode]string{}}
	if err := p.tree(dir, ""); err != nil {
		return p.packed, err
	}
	return p.packed, p.archive.Close()
}

// PackPaths writes files and directories under their absolute paths. It ignores paths that do not exist
// or are not readable. A path that is a symbolic link is packed as the file it leads to.
func PackPaths(w io.Writer, paths []string) (Packed, error) {
	p := &packer{archive: tar.NewWriter(w)}
	for _, path := range paths {
		err := p.tree(path, path)
		if err != nil && !errors.Is(err, iofs.ErrPermission) && !errors.Is(err, iofs.ErrNotExist) {
			return p.packed, err
		}
	}
	return p.packed, p.archive.Close()
}

// PackOwn writes the directory dir with its own files, except files larger than a limit
// (the parameter most) in bytes. Its subdirectories are written empty.
func PackOwn(w io.Writer, dir string, most int64) (Packed, error) {
	p := &packer{archive: tar.NewWriter(w), own: true, most: most}
	if err := p.tree(dir, ""); err != nil {
		return p.packed, err
	}
	return p.packed, p.archive.Close()
}

// ErrMadeUp is returned for a file that the kernel generates when it is read, such as those of /proc.
// Its size is unknown, and its content may have no end. Directories of such files below dir are packed
// empty.
var ErrMadeUp = errors.New("the kernel makes it up when it is read")

// inventions contains the types of file systems whose files are generated when they are read (linux/magic.h).
var inventions = map[int64]bool{
	0x9fa0:     true, // proc
	0x62656572: true, // sysfs
	0x0027e0eb: true, // cgroup
	0x63677270: true, // cgroup2
	0x64626720: true, // debugfs
	0x74726163: true, // tracefs
	0x73636673: true, // securityfs
	0xcafe4a11: true, // bpf
}

// madeUp reports whether a file or directory is on such a file system.
func madeUp(root *os.Root, path string) bool {
	f, err := root.OpenFile(path, openFlags, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	var st syscall.Statfs_t
	return syscall.Fstatfs(int(f.Fd()), &st) == nil && inventions[st.Type]
}

// openFlags opens a file that another process may have replaced in the meantime: a symbolic link is not
// followed, and the open does not wait for the other end of a FIFO.
const openFlags = os.O_RDONLY | linux.O_NOFOLLOW | linux.O_NONBLOCK

// versions are the names of version control directories, which contain more than the current files.
var versions = map[string]bool{".git": true, ".hg": true, ".svn": true, ".bzr": true}

// tree writes a directory, or one file, under a name (the parameter as). If the name is empty, the directory becomes
// the root, and a file keeps its own name in the root. The path to the directory may contain symbolic links. Below it,
// no link leads out (os.Root), even if another process changes the tree at the same time.
func (p *packer) tree(dir, as string) error {
	folder, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	st, err := os.Stat(folder)
	if err != nil {
		return err
	}
	start := "."
	if !st.IsDir() {
		folder, start = filepath.Dir(folder), filepath.Base(folder)
	}
	if p.root, err = os.OpenRoot(folder); err != nil {
		return err
	}
	defer p.root.Close()
	if madeUp(p.root, start) {
		return ErrMadeUp
	}
	return iofs.WalkDir(p.root.FS(), start, func(path string, d iofs.DirEntry, err error) error {
		if err == nil && d.IsDir() && versions[d.Name()] && p.names == nil {
			return iofs.SkipDir
		}
		if err == nil {
			name := filepath.Join(as, path)
			if path == start && as != "" {
				name = as
			}
			err = p.add(path, name)
		}
		if errors.Is(err, iofs.ErrPermission) || errors.Is(err, iofs.ErrNotExist) || errors.Is(err, errChanged) {
			if path == start {
				return err
			}
			p.packed.Skipped++
			return nil
		}
		if err == nil && d.IsDir() && path != start && (p.own || madeUp(p.root, path)) {
			return iofs.SkipDir
		}
		return err
	})
}

// errChanged is returned for a file that was replaced before it was opened.
var errChanged = errors.New("it was replaced while it was packed")

// packer is a Pack in progress.
type packer struct {
	archive *tar.Writer
	root    *os.Root // root of the tree; all paths are relative to it
	packed  Packed
	own     bool  // PackOwn: directories are empty
	most    int64 // PackOwn: maximum file size in bytes

	// PackRoot: the first name of each file that has several; otherwise nil
	names map[inode]string
}

// inode identifies a file of the host.
type inode struct{ device, number uint64 }

// add writes one file under a name. Errors of the archive end Pack; errors of the file are counted as
// skipped.
func (p *packer) add(path, name string) error {
	st, err := p.root.Lstat(path)
	if err != nil {
		return err
	}
	h, err := p.header(path, name, st)
	if h == nil {
		return err
	}
	if !st.Mode().IsRegular() {
		p.packed.Files++
		return p.archive.WriteHeader(h)
	}
	f, err := p.open(path, st)
	if err != nil {
		return err
	}
	defer f.Close()
	if p.names != nil {
		if p.again(h, name, st) {
			p.packed.Files++
			return p.archive.WriteHeader(h)
		}
		addCapabilities(h, f)
	}
	if err := p.archive.WriteHeader(h); err != nil {
		return err
	}
	p.packed.Files++
	p.packed.Bytes += h.Size
	n, err := io.Copy(p.archive, io.LimitReader(f, h.Size))
	if err != nil {
		return err
	}
	_, err = io.CopyN(p.archive, zeros{}, h.Size-n) // the file has become shorter
	return err
}

// again reports whether a file has been written under another name. Then it changes the header to a hard link.
func (p *packer) again(h *tar.Header, name string, st os.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || sys.Nlink < 2 {
		return false
	}
	i := inode{uint64(sys.Dev), sys.Ino}
	first, again := p.names[i]
	if !again {
		p.names[i] = name
		return false
	}
	h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
	return true
}

// capabilities is the extended attribute with the capabilities of a program (capabilities(7)). Its value has up to
// maxCapabilities bytes (struct vfs_ns_cap_data).
const (
	capabilities    = "security.capability"
	maxCapabilities = 24
)

// xattrRecord is the prefix of PAX records with extended attributes, as GNU tar and star write them.
const xattrRecord = "SCHILY.xattr."

// addCapabilities adds the capabilities of a file to its header. It names the file by its descriptor, because another file
// may have replaced it under its name.
func addCapabilities(h *tar.Header, f *os.File) {
	value := make([]byte, maxCapabilities)
	n, err := syscall.Getxattr(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), capabilities, value)
	if err == nil {
		h.PAXRecords = map[string]string{xattrRecord + capabilities: string(value[:n])}
	}
}

// open opens the file described by st. Errors: errChanged.
func (p *packer) open(path string, st os.FileInfo) (*os.File, error) {
	f, err := p.root.OpenFile(path, openFlags, 0)
	if errors.Is(err, linux.ELOOP) {
		err = errChanged
	}
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(st, now) || !now.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, errChanged)
	}
	return f, nil
}

// header returns the header of a file, or nil if the file cannot be packed.
func (p *packer) header(path, name string, st os.FileInfo) (*tar.Header, error) {
	if st.Mode()&(os.ModeSocket|os.ModeDevice|os.ModeIrregular) != 0 || p.own && st.Mode().IsRegular() && st.Size() > p.most {
		p.packed.Skipped++
		return nil, nil
	}
	target := ""
	if st.Mode()&os.ModeSymlink != 0 {
		var err error
		if target, err = p.root.Readlink(path); err != nil {
			return nil, err
		}
	}
	h := &tar.Header{
		Name: name, Linkname: target, Mode: int64(st.Mode().Perm()), ModTime: st.ModTime(), Format: tar.FormatPAX,
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		h.Uid, h.Gid, h.Mode = int(sys.Uid), int(sys.Gid), int64(sys.Mode&0o7777)
	}
	switch {
	case st.IsDir():
		h.Typeflag = tar.TypeDir
	case target != "":
		h.Typeflag = tar.TypeSymlink
	case st.Mode()&os.ModeNamedPipe != 0:
		h.Typeflag = tar.TypeFifo
	default:
		h.Typeflag, h.Size = tar.TypeReg, st.Size()
	}
	return h, nil
}

// zeros reads as zeros without end.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
