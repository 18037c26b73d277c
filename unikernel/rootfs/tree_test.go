package rootfs

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An archive is recognised by its content. Entries replace earlier ones, as when tar extracts them. Names as in whiteouts
// are ordinary names.
func TestArchives(t *testing.T) {
	plain := archive(t, file("./a", "1"), file("d/e", "2"), symlink("l", "../../../d"), file("l/f", "3"), file("a", "4"),
		hardlink("h", "/a"), file(".wh.a", "5"), item{tar.TypeChar, "dev/null", ""}, item{tar.TypeBlock, "srv/dev/sda", ""}, item{tar.TypeFifo, "p", ""})
	const want = "/.wh.a 5*1; /a 4*2; /d/; /d/e 2*1; /d/f 3*1; /dev/; /h 4*2; /l -> ../../../d; /srv/; /srv/dev/"
	bzip := written(t, "root.bz2", bzip2OfFile)
	for _, name := range []string{
		written(t, "root.tar", plain), written(t, "root", plain), written(t, "root.tar.gz", gzipped(plain)),
		written(t, "root.tar.zst", zstandard(plain)), written(t, "other.name", zstandard(plain)),
		written(t, "frames.zst", append([]byte{0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 'x'}, zstandard(plain)...)),
	} {
		root, err := read(t, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := loaded(t, root); got != want || root.Config != nil || root.Devices != 1 {
			t.Errorf("%s: %s, %d devices; want %s", name, got, root.Devices, want)
		}
	}
	if root, err := read(t, bzip); err != nil || loaded(t, root) != "/f x*1" {
		t.Errorf("%v, %v", root, err)
	}
}

// bzip2OfFile is an archive with the file f, compressed by bzip2.
var bzip2OfFile = []byte("\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\xa8\x81\x57\xb4\x00\x00\x6d\x5b\x80\xc9\x80\x60\x00\x65\x00\x00\x00\xe1\x00\x1e" +
	"\x40\x08\x08\x20\x00\x54\x32\x9a\x34\x00\x0d\x02\x49\xaa\x0c\x8c\x13\x4d\x1f\x5e\x63\x42\x0d\x6e\x08\x45\x23\xc7\x22\xbd" +
	"\xcf\x94\x08\x80\x82\x8c\x4e\x04\x5d\xa0\xaf\xbe\x52\x88\x8a\x7b\xae\x33\x37\xa4\x49\x03\xe2\xee\x48\xa7\x0a\x12\x15\x10" +
	"\x2a\xf6\x80")

// A folder keeps hard links and version control folders.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, ".git"), 0o755), os.WriteFile(filepath.Join(dir, ".git/a"), []byte("1"), 0o644),
		os.Link(filepath.Join(dir, ".git/a"), filepath.Join(dir, "b")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := read(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := loaded(t, root); got != "/.git/; /.git/a 1*2; /b 1*2" {
		t.Error(got)
	}
}

// Attributes survive: mode, owner, time, and extended attributes.
func TestAttributes(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	given := []*tar.Header{
		{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o1777, Uid: 1, Gid: 2},
		{Name: "f", Typeflag: tar.TypeReg, Mode: 0o4755, Uid: 3_000_000, Gid: 4, PAXRecords: map[string]string{"SCHILY.xattr.user.a": "b\x00", "OTHER.x": "y"}},
	}
	for _, h := range given {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	root, err := read(t, written(t, "root.tar", b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(io.NewSectionReader(root.Archive, 0, 1<<30))
	r.Next() // the root folder
	for _, want := range given {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode != want.Mode || h.Uid != want.Uid || h.Gid != want.Gid || h.PAXRecords["SCHILY.xattr.user.a"] != want.PAXRecords["SCHILY.xattr.user.a"] || h.PAXRecords["OTHER.x"] != "" {
			t.Errorf("%+v, want %+v", h, want)
		}
	}
}

// A hostile archive is refused with one line, and leaves nothing behind.
func TestArchiveRefused(t *testing.T) {
	many := make([]item, 101)
	for i := range many {
		many[i] = folder(fmt.Sprint(i))
	}
	zeros := strings.Repeat("\x00", 2<<20)
	for want, content := range map[string][]byte{
		"it is no archive":             []byte("text"),
		"it contains no files":         archive(t),
		"it ends too early":            archive(t, file("f", strings.Repeat("x", 5000)))[:2000],
		"it contains more than 100":    archive(t, many...),
		"../x leads out of the root":   archive(t, file("a/../../x", "")),
		"to /x, which it does not":     archive(t, hardlink("l", "/x")),
		"its path ../x leads out":      archive(t, hardlink("l", "../x")),
		"leads to the folder d":        archive(t, folder("d"), hardlink("l", "d")),
		"too many symbolic links":      archive(t, symlink("a", "b"), symlink("b", "a"), file("a/x", "")),
		"in the place of its folder":   archive(t, file("a", ""), file("a/x", "")),
		"has a target of 5000 bytes":   archive(t, symlink("a", strings.Repeat("x", 5000))),
		"has 256 bytes, more than 255": archive(t, file(strings.Repeat("x", 256), "")),
		"has 5001 bytes, more than":    archive(t, file(strings.Repeat("x/", 2500)+"x", "")),
		"larger than the machine's":    gzipped(archive(t, file("f", zeros))),
		"than the machine's memory":    zstandard([]byte(zeros)),
		"compressed by lz4":            append(magicLz4[:4:4], zeros...),
		"or damaged: gzip:":            append(magicGzip[:2:2], zeros...),
	} {
		_, err := read(t, written(t, "root.tar", content))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for want, name := range map[string]string{
		"no such file or directory": filepath.Join(t.TempDir(), "none"),
		"neither a folder nor":      "/dev/null",
		"is a plain folder":         t.TempDir() + ":latest",
		"is a plain archive":        written(t, "root.tar", archive(t, file("f", ""))) + ":latest",
	} {
		if _, err := read(t, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A sparse file of a small archive counts with its full size.
func TestSparseFile(t *testing.T) {
	records := map[string]string{"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "f", "GNU.sparse.size": "1000000000000", "GNU.sparse.numblocks": "0", "GNU.sparse.map": ""}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	// The writer of archive/tar refuses sparse files, so that the records get other names first.
	renamed := map[string]string{}
	for key, value := range records {
		renamed[strings.Replace(key, "GNU", "GNV", 1)] = value
	}
	if err := w.WriteHeader(&tar.Header{Name: "f", Typeflag: tar.TypeReg, PAXRecords: renamed}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	content := bytes.ReplaceAll(b.Bytes(), []byte("GNV"), []byte("GNU"))
	if _, err := read(t, written(t, "root.tar", content)); err == nil || !strings.Contains(err.Error(), "larger than the machine's memory") {
		t.Error(err)
	}
}

// Read does not panic, and its result can be loaded.
func FuzzRead(f *testing.F) {
	f.Add(archive(f, file("a", "b"), folder("d"), symlink("s", "d"), hardlink("d/h", "a")), false)
	f.Add(gzipped(archive(f, file("a", "b"))), false)
	f.Add(archive(f, file("a/.wh..wh..opq", ""), file(".wh.a", "")), true)
	f.Fuzz(func(t *testing.T, content []byte, layer bool) {
		name := ""
		if layer {
			l := newLayout(t)
			name = l.list(l.image(amd64(Config{}), l.blob(testLayer, archive(t, file("a/b", "c"))), l.blob(testLayer, content)))
		} else {
			name = written(t, "root", content)
		}
		if root, err := read(t, name); err == nil {
			loaded(t, root)
		}
	})
}
