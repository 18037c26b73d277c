package tarfs

import (
	"archive/tar"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Packed says what Pack has written.
type Packed struct {
	Files int   // of any type
	Bytes int64 // of content
	// Skipped counts what was left out: sockets, devices, what may not be read,
	// and what went away meanwhile.
	Skipped int
}

// Pack writes the folder dir, or one file, which then is the root's only entry by
// its own name. Symbolic links stay links, wherever they lead. Folders of version
// control are left out.
func Pack(w io.Writer, dir string) (Packed, error) {
	p := &packer{archive: tar.NewWriter(w)}
	if err := p.tree(dir, ""); err != nil {
		return p.packed, err
	}
	return p.packed, p.archive.Close()
}

// PackPaths writes files and folders under the absolute paths that they have, and
// leaves out those that are not there. A path that is a symbolic link becomes what
// it leads to.
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

// PackOwn writes the folder dir with the files that lie in it, as far as none is larger
// than most. Folders in it are empty.
func PackOwn(w io.Writer, dir string, most int64) (Packed, error) {
	p := &packer{archive: tar.NewWriter(w), own: true, most: most}
	if err := p.tree(dir, ""); err != nil {
		return p.packed, err
	}
	return p.packed, p.archive.Close()
}

// ErrMadeUp is told of files that the kernel makes up when they are read, as those of /proc: their
// sizes are not those of what is read, which may have no end. Folders of them in what is packed are empty.
var ErrMadeUp = errors.New("the kernel makes it up when it is read")

// inventions are the types of file systems with such files (linux/magic.h).
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

// madeUp reports whether a file or folder is of a file system of inventions.
func madeUp(path string) bool {
	var st syscall.Statfs_t
	return syscall.Statfs(path, &st) == nil && inventions[st.Type]
}

// versions are folders of version control, which hold more than what they are of.
var versions = map[string]bool{".git": true, ".hg": true, ".svn": true, ".bzr": true}

// tree writes a folder, or one file, under the name as; empty: the folder is the
// root, or the file is in it by its own name.
func (p *packer) tree(dir, as string) error {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	base := root
	if st, err := os.Stat(root); err != nil {
		return err
	} else if !st.IsDir() && as == "" {
		base = filepath.Dir(root)
	}
	if madeUp(root) {
		return ErrMadeUp
	}
	return filepath.WalkDir(root, func(path string, d iofs.DirEntry, err error) error {
		if err == nil && d.IsDir() && versions[d.Name()] {
			return filepath.SkipDir
		}
		if err == nil {
			err = p.add(base, path, as)
		}
		if errors.Is(err, iofs.ErrPermission) || errors.Is(err, iofs.ErrNotExist) {
			if path == root {
				return err
			}
			p.packed.Skipped++
			return nil
		}
		if err == nil && d.IsDir() && path != root && (p.own || madeUp(path)) {
			return filepath.SkipDir
		}
		return err
	})
}

// packer is a Pack under way.
type packer struct {
	archive *tar.Writer
	packed  Packed
	own     bool  // folders are empty
	most    int64 // of own: the largest file
}

// add writes one file. An error that is not about the file itself ends Pack.
func (p *packer) add(base, path, as string) error {
	st, err := os.Lstat(path)
	if err != nil {
		return err
	}
	h, err := p.header(base, path, as, st)
	if h == nil {
		return err
	}
	if !st.Mode().IsRegular() {
		p.packed.Files++
		return p.archive.WriteHeader(h)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := p.archive.WriteHeader(h); err != nil {
		return err
	}
	p.packed.Files++
	p.packed.Bytes += h.Size
	n, err := io.Copy(p.archive, io.LimitReader(f, h.Size))
	if err != nil {
		return err
	}
	_, err = io.CopyN(p.archive, zeros{}, h.Size-n) // it has become shorter
	return err
}

// header describes a file; none when it cannot be packed.
func (p *packer) header(base, path, as string, st os.FileInfo) (*tar.Header, error) {
	if st.Mode()&(os.ModeSocket|os.ModeDevice|os.ModeIrregular) != 0 || p.own && st.Mode().IsRegular() && st.Size() > p.most {
		p.packed.Skipped++
		return nil, nil
	}
	target := ""
	if st.Mode()&os.ModeSymlink != 0 {
		var err error
		if target, err = os.Readlink(path); err != nil {
			return nil, err
		}
	}
	name, err := filepath.Rel(base, path)
	if err != nil {
		return nil, err
	}
	h := &tar.Header{
		Name: filepath.Join(as, name), Linkname: target, Mode: int64(st.Mode().Perm()), ModTime: st.ModTime(), Format: tar.FormatPAX,
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

// zeros has zeros without end.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
