package rootfs

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
	"path"

	"github.com/klauspost/compress/zstd"
)

// maxWindow limits the memory that a zstd stream may require for decompression. It is the window of `zstd --long`.
const maxWindow = 128 << 20

// The first bytes of compressed files.
var (
	magicGzip  = []byte{0x1f, 0x8b}
	magicBzip2 = []byte("BZh")
	magicZstd  = []byte{0x28, 0xb5, 0x2f, 0xfd} // RFC 8878, 3.1.1
	magicXz    = []byte{0xfd, '7', 'z', 'X', 'Z', 0}
	magicLz4   = []byte{0x04, 0x22, 0x4d, 0x18}
)

// isSkippable reports whether a file starts with a skippable frame of zstd (RFC 8878, 3.1.2), as files of pzstd do.
func isSkippable(head []byte) bool {
	return len(head) >= 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18})
}

// decompressed returns a reader for the decompressed content of r, and whether r is compressed.
func decompressed(r io.ReadSeeker) (io.ReadCloser, bool, error) {
	head := make([]byte, len(magicXz))
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return nil, false, err
	}
	head = head[:n]
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, false, err
	}
	buffered := bufio.NewReaderSize(r, 256<<10)
	switch {
	case bytes.HasPrefix(head, magicGzip):
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, false, damaged(err)
		}
		return z, true, nil
	case bytes.HasPrefix(head, magicBzip2):
		return io.NopCloser(bzip2.NewReader(buffered)), true, nil
	case bytes.HasPrefix(head, magicZstd), isSkippable(head):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, false, damaged(err)
		}
		return z.IOReadCloser(), true, nil
	case bytes.HasPrefix(head, magicXz):
		return nil, false, errorf("decompress it (xz -d), or compress it by zstd", "it is compressed by xz")
	case bytes.HasPrefix(head, magicLz4):
		return nil, false, errorf("decompress it (lz4 -d), or compress it by zstd", "it is compressed by lz4")
	}
	return io.NopCloser(r), false, nil
}

// damaged returns the error for an archive that cannot be read to its end.
func damaged(err error) error {
	var own *Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return errorf("compress it again, with at most --long=27", "decompression needs more than %d MiB of memory", maxWindow>>20)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("it ends too early")
	}
	return errorf("copy it again", "it is no archive, or damaged: %v", err)
}

// archiveStore implements store for a tar archive that is not compressed.
type archiveStore struct {
	from  io.ReaderAt
	files map[string]*io.SectionReader
	links map[string]string // targets of symbolic links
}

// openArchive reads the names of all files in an archive of at most most files.
func openArchive(from io.ReaderAt, size int64, most int) (*archiveStore, error) {
	a := &archiveStore{from, map[string]*io.SectionReader{}, map[string]string{}}
	// tar.Reader skips content by io.Seeker, and then continues to read at the offset of the next header.
	at := io.NewSectionReader(from, 0, size)
	t := tar.NewReader(at)
	for n := 0; ; n++ {
		h, err := t.Next()
		if err == io.EOF {
			return a, nil
		}
		if err != nil {
			return nil, damaged(err)
		}
		if n == most {
			return nil, errTooMany(most)
		}
		name := path.Clean("/" + h.Name)
		start, err := at.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		switch h.Typeflag {
		case tar.TypeReg:
			a.files[name] = io.NewSectionReader(from, start, h.Size)
		case tar.TypeSymlink: // docker before version 25 writes layers that occur twice as symbolic links
			a.links[name] = path.Join(path.Dir(name), h.Linkname)
		}
	}
}

// errTooMany returns the error for more names than a machine should hold.
func errTooMany(most int) error {
	return errorf("give the machine more memory (-m)", "it contains more than %d files", most)
}

// open implements store.
func (a *archiveStore) open(name string) (blob, error) {
	name = path.Clean("/" + name)
	if target, ok := a.links[name]; ok {
		name = target
	}
	r, ok := a.files[name]
	if !ok {
		return nil, errMissing
	}
	return sectionBlob{io.NewSectionReader(r, 0, r.Size())}, nil
}

// sectionBlob is a part of an archive as a blob.
type sectionBlob struct{ *io.SectionReader }

// Close implements io.Closer. The archive stays open.
func (sectionBlob) Close() error { return nil }
