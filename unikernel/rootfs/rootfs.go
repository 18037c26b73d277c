// Package rootfs reads the root folder of a Linux program: a folder, a tar archive, or a container image. The result of
// [Source.Read] is one tar archive, which the guest loads (fs/tarfs), and the configuration of an image.
//
// A container image is an OCI image layout (OCI image specification 1.1), or an archive that docker save writes. The
// layout is a folder or a tar archive. Archives and layers may be compressed by gzip, zstd or bzip2, which their first
// bytes show. Digests are verified before the content is used. Of several platforms, linux/amd64 is chosen.
//
// The layers of an image are applied in their order to a tree of names in memory, with the effect that extracting them
// would have (tree.go). Symbolic links are followed inside the tree only. The content of files is copied to a nameless
// file, which disappears with the process. When all layers are applied, the tree is written as an archive.
//
// Input may be hostile. Limits bound the decompressed bytes, the number of names and the size of JSON texts. Device
// files are left out, because the guest has its own.
//
// Reading order: rootfs.go, archive.go, tree.go; then store.go, image.go and docker.go for images.
package rootfs

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"strings"

	"loam/fs/tarfs"
)

// Source names a root folder, and limits what is read.
type Source struct {
	// Name is the path of a folder or a file. An image of several can be named by PATH:TAG.
	Name  string
	Bytes int64 // maximum size of the result, and of all decompressed layers together
	Names int   // maximum number of files in an archive or image
	// NewFile creates a file without a name.
	NewFile func() (*os.File, error)
}

// Root is a root folder that was read.
type Root struct {
	Archive *os.File // the files; the caller closes it
	Config  *Config  // configuration of an image; nil for a folder or an archive
	Devices int      // number of device files outside of /dev, which were left out
}

// Config is the part of an image's configuration that concerns the program.
type Config struct {
	User       string // USER[:GROUP], names or numbers; empty: root
	Env        []string
	Entrypoint []string
	Cmd        []string
	WorkingDir string
}

// Error is an error that the user can act on.
type Error struct{ What, Next string }

// Error implements error.
func (e *Error) Error() string { return e.What + ": " + e.Next }

func errorf(next, format string, args ...any) error {
	return &Error{What: fmt.Sprintf(format, args...), Next: next}
}

// otherRoot is the advice for a file that cannot be a root folder.
const otherRoot = "name a folder, an archive that tar has made, or an image in OCI's layout"

// errTooLarge returns the error for a root folder that is larger than the machine's memory.
func errTooLarge() error {
	return errorf("give the machine more memory (-m)", "it is larger than the machine's memory")
}

// Read reads the root folder. No file remains if it fails. The error is an *Error if the user can act on it.
func (s Source) Read() (*Root, error) {
	name, tag := s.Name, ""
	st, err := os.Stat(name)
	if err != nil {
		if i := strings.LastIndexByte(name, ':'); i > 0 {
			if other, e := os.Stat(name[:i]); e == nil {
				name, tag, st, err = name[:i], name[i+1:], other, nil
			}
		}
	}
	switch {
	case err != nil:
		var path *iofs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, errorf(otherRoot, "%v", err)
	case st.IsDir():
		return s.readFolder(name, tag)
	case !st.Mode().IsRegular():
		return nil, errorf(otherRoot, "it is neither a folder nor a file")
	}
	return s.readFile(name, tag)
}

// readFolder reads a folder, which may contain an image.
func (s Source) readFolder(name, tag string) (*Root, error) {
	files, err := os.OpenRoot(name)
	if err != nil {
		return nil, errorf(otherRoot, "%v", err)
	}
	defer files.Close()
	if isLayout(folderStore{files}) {
		return s.readImage(folderStore{files}, tag)
	}
	if tag != "" {
		return nil, errorf("leave it out", "there is no image %s, because %s is a plain folder", tag, name)
	}
	archive, err := s.NewFile()
	if err != nil {
		return nil, err
	}
	if _, err := tarfs.PackRoot(&limitedWriter{archive, s.Bytes}, name); err != nil {
		archive.Close()
		var own *Error
		if errors.As(err, &own) {
			return nil, own
		}
		return nil, errorf("name a folder that can be read", "%v", err)
	}
	return &Root{Archive: archive}, nil
}

// readFile reads an archive, which may contain an image.
func (s Source) readFile(name, tag string) (*Root, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, errorf("name a file that can be read", "%v", err)
	}
	defer file.Close()
	plain, size, err := s.decompress(file)
	if err != nil {
		return nil, err
	}
	if plain != file {
		defer plain.Close()
	}
	store, err := openArchive(plain, size, s.Names)
	switch {
	case err != nil:
		return nil, err
	case isLayout(store):
		return s.readImage(store, tag)
	case isDockerArchive(store):
		return s.readDocker(store, tag)
	case tag != "":
		return nil, errorf("leave it out", "there is no image %s, because %s is a plain archive", tag, name)
	}
	return s.build(func(t *tree) (*Config, error) {
		return nil, t.addArchive(io.NewSectionReader(plain, 0, size), false)
	})
}

// decompress returns an archive's decompressed content, and its size. The result is the file itself if the file is not
// compressed.
func (s Source) decompress(file *os.File) (*os.File, int64, error) {
	st, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	r, compressed, err := decompressed(file)
	if err != nil {
		return nil, 0, err
	}
	if !compressed {
		return file, st.Size(), nil
	}
	defer r.Close()
	plain, err := s.NewFile()
	if err != nil {
		return nil, 0, err
	}
	n, err := io.Copy(&limitedWriter{plain, s.Bytes}, r)
	if err != nil {
		plain.Close()
		return nil, 0, damaged(err)
	}
	return plain, n, nil
}

// build makes a root folder of the files that fill adds to a tree.
func (s Source) build(fill func(*tree) (*Config, error)) (_ *Root, err error) {
	contents, err := s.NewFile()
	if err != nil {
		return nil, err
	}
	defer contents.Close()
	t := newTree(contents, s.Bytes, s.Names)
	config, err := fill(t)
	if err != nil {
		return nil, err
	}
	if len(t.root.children) == 0 {
		return nil, errorf(otherRoot, "it contains no files")
	}
	archive, err := s.NewFile()
	if err != nil {
		return nil, err
	}
	if err := t.write(&limitedWriter{archive, s.Bytes}); err != nil {
		archive.Close()
		return nil, err
	}
	return &Root{Archive: archive, Config: config, Devices: t.devices}, nil
}

// limitedWriter is a writer with a limit: its field left is the number of bytes that it still accepts. A longer write returns
// errTooLarge.
type limitedWriter struct {
	to   io.Writer
	left int64
}

// Write implements io.Writer.
func (w *limitedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		return 0, errTooLarge()
	}
	w.left -= int64(len(p))
	return w.to.Write(p)
}
