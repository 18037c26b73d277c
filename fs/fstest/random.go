package fstest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"loam/abi/linux"
	"loam/fs"
)

// asLinux makes random calls on the file system and the same calls on Linux in a temporary directory.
// Every call must return the same error, and the final trees must be equal. The calls use only a few
// names, so they exercise every rule.
func asLinux(t *testing.T, v *fs.View) {
	for seed := range uint64(20) {
		r := &twin{T: t, view: v, rand: rand.New(rand.NewPCG(seed, 0)), host: t.TempDir(), guest: fmt.Sprint("run", seed)}
		must(t, v.Mkdir(v.Dir, r.guest, 0o755))
		for step := range 400 {
			if call, here, there := r.call(); here != there {
				t.Fatalf("seed %d, step %d: %s: %q, on Linux %q", seed, step, call, name(here), name(there))
			}
		}
		r.compare(".")
	}
}

func name(e linux.Errno) string {
	if e == 0 {
		return "no error"
	}
	return e.Error()
}

// twin makes each call on the tested file system and on Linux, and compares the results.
type twin struct {
	*testing.T
	rand  *rand.Rand
	view  *fs.View
	guest string // directory in the tested file system
	host  string // directory on Linux
}

// path returns a random path of a few names, at most about four levels deep.
func (r *twin) path() string {
	path := ""
	for {
		path += []string{"a", "b", "c", "a", "b", "..", "."}[r.rand.IntN(7)]
		if r.rand.IntN(3) > 0 || len(path) > 6 {
			break
		}
		path += "/"
	}
	if r.rand.IntN(20) == 0 {
		path += "/"
	}
	return filepathKeep(path)
}

// filepathKeep replaces a path that would leave the directory through "..".
func filepathKeep(path string) string {
	depth := 0
	for i := 0; i+1 < len(path); i++ {
		switch {
		case path[i:i+2] == "..":
			depth--
			i++
		case path[i] >= 'a':
			depth++
		}
		if depth < 0 {
			return "a"
		}
	}
	return path
}

func errno(err error) linux.Errno {
	e, _ := err.(linux.Errno)
	return e
}

// call makes one random call.
func (r *twin) call() (text string, here, there linux.Errno) {
	a, b := r.path(), r.path()
	v, dir := r.view, r.view.Dir
	ga, gb, ha, hb := r.guest+"/"+a, r.guest+"/"+b, r.host+"/"+a, r.host+"/"+b
	switch r.rand.IntN(10) {
	case 0, 1:
		return "mkdir " + a, errno(v.Mkdir(dir, ga, 0o755)), errno(syscall.Mkdir(ha, 0o755))
	case 2:
		return "rmdir " + a, errno(v.Rmdir(dir, ga)), errno(syscall.Rmdir(ha))
	case 3:
		return "unlink " + a, errno(v.Unlink(dir, ga)), errno(syscall.Unlink(ha))
	case 4, 5:
		return "rename " + a + " " + b, errno(v.Rename(dir, ga, dir, gb, 0)), errno(syscall.Rename(ha, hb))
	case 6:
		return "link " + a + " " + b, errno(r.link(ga, gb)), errno(syscall.Link(ha, hb))
	case 7:
		return "symlink " + a + " " + b, errno(v.Symlink(a, dir, gb)), errno(syscall.Symlink(a, hb))
	}
	content, offset := make([]byte, r.rand.IntN(9000)), int64(r.rand.IntN(9000))
	for i := range content {
		content[i] = byte(r.rand.Uint32())
	}
	flags := []int{0, linux.O_CREAT, linux.O_CREAT | linux.O_EXCL, linux.O_TRUNC, linux.O_NOFOLLOW}[r.rand.IntN(5)]
	return fmt.Sprintf("write %s %#x", a, flags), errno(r.write(ga, flags, content, offset)), errno(writeHost(ha, flags, content, offset))
}

func (r *twin) link(old, path string) error {
	p, err := r.view.Lookup(r.view.Dir, old, false)
	if err != nil {
		return err
	}
	return r.view.Link(p, r.view.Dir, path)
}

func (r *twin) write(path string, flags int, content []byte, offset int64) error {
	f, err := r.view.Open(r.view.Dir, path, fs.ReadWrite|fs.Flags(flags), 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(content, offset)
	return err
}

func writeHost(path string, flags int, content []byte, offset int64) error {
	fd, err := syscall.Open(path, linux.O_RDWR|flags, 0o644)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_, err = syscall.Pwrite(fd, content, offset)
	return err
}

// compare compares a directory and everything below it.
func (r *twin) compare(dir string) {
	entries, err := os.ReadDir(filepath.Join(r.host, dir))
	must(r.T, err)
	f := open(r.T, r.view, r.guest+"/"+dir, fs.MustBeDir)
	defer f.Close()
	count := 0
	must(r.T, f.ReadDir(func(fs.Entry) bool { count++; return true }))
	if count != len(entries)+2 {
		r.Errorf("%s: %d names, on Linux %d", dir, count-2, len(entries))
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		p, err := r.view.Lookup(r.view.Dir, r.guest+"/"+path, false)
		if err != nil {
			r.Errorf("%s: %v", path, err)
			continue
		}
		r.compareFile(path, p)
		if e.IsDir() {
			r.compare(path)
		}
	}
}

func (r *twin) compareFile(path string, p fs.Place) {
	var st syscall.Stat_t
	must(r.T, syscall.Lstat(filepath.Join(r.host, path), &st))
	a := p.Node.Attr()
	isDir := a.Mode.Type() == fs.Dir
	if uint32(a.Mode.Type()) != st.Mode&linux.S_IFMT || !isDir && (uint64(a.Links) != st.Nlink || a.Size != st.Size) {
		r.Errorf("%s: mode %o, %d links, size %d; on Linux %o, %d, %d", path, a.Mode, a.Links, a.Size, st.Mode, st.Nlink, st.Size)
	}
	if a.Mode.Type() != fs.Regular {
		return
	}
	want, err := os.ReadFile(filepath.Join(r.host, path))
	must(r.T, err)
	f := open(r.T, r.view, r.guest+"/"+path, fs.ReadOnly)
	defer f.Close()
	got := make([]byte, a.Size)
	if n, err := f.Read(got); n != len(got) || err != nil || string(got) != string(want) {
		r.Errorf("%s: %d bytes, %v, or other content than on Linux", path, n, err)
	}
}
