package memfs_test

import (
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
)

// A nameless file (memfd_create) frees its memory when it is closed.
func TestNameless(t *testing.T) {
	v := newView(memfs.Config{Bytes: 64 << 10, Files: 2})
	f, err := v.OpenNameless(0o600)
	if err != nil {
		t.Fatal(err)
	}
	if a := f.Attr(); a.Links != 0 || a.Mode != fs.Regular|0o600 {
		t.Errorf("%+v", a)
	}
	if n, err := f.Write(make([]byte, 10_000)); n != 10_000 || err != nil {
		t.Errorf("write: %d, %v", n, err)
	}
	if _, err := v.OpenNameless(0o600); err != linux.ENOSPC {
		t.Errorf("a file more than there may be: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if u := v.Root.Usage(); u.BlocksFree != u.Blocks || u.FilesFree != 1 {
		t.Errorf("after the close: %+v", u)
	}
}

// Files of memfd_create are on the file system of Tree.SetMemory, if there is one.
func TestNamelessInMemory(t *testing.T) {
	v := newView(memfs.Config{Files: 1})
	if _, err := v.OpenNameless(0o600); err != linux.ENOSPC {
		t.Fatalf("the root has room for one file: %v", err)
	}
	memory := memfs.New(memfs.Config{Files: 2})
	v.Tree.SetMemory(memory)
	f, err := v.OpenNameless(0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.AddSeals(fs.SealWrite); err != nil {
		t.Error(err)
	}
	if u := memory.Usage(); u.FilesFree != 0 {
		t.Errorf("%+v", u)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// Seals forbid exactly the operations that fcntl(2) lists.
func TestSeals(t *testing.T) {
	for name, c := range map[string]struct {
		seals                        fs.Seals
		shorter, longer, over, write error
	}{
		"none":         {0, nil, nil, nil, nil},
		"shrink":       {fs.SealShrink, linux.EPERM, nil, nil, nil},
		"grow":         {fs.SealGrow, nil, linux.EPERM, linux.EPERM, nil},
		"write":        {fs.SealWrite, nil, nil, linux.EPERM, linux.EPERM},
		"future write": {fs.SealFutureWrite, nil, nil, linux.EPERM, linux.EPERM},
	} {
		t.Run(name, func(t *testing.T) {
			v := newView(memfs.Config{})
			f, err := v.OpenNameless(0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := f.Truncate(100); err != nil {
				t.Fatal(err)
			}
			if err := f.AddSeals(c.seals); err != nil {
				t.Error(err)
			}
			if _, err := f.WriteAt([]byte("x"), 0); err != c.write {
				t.Errorf("write: %v, want %v", err, c.write)
			}
			if _, err := f.WriteAt([]byte("xx"), 99); err != c.over {
				t.Errorf("write across the end: %v, want %v", err, c.over)
			}
			if err := f.Truncate(200); err != c.longer {
				t.Errorf("longer: %v, want %v", err, c.longer)
			}
			if err := f.Truncate(10); err != c.shorter {
				t.Errorf("shorter: %v, want %v", err, c.shorter)
			}
			f.AddSeals(fs.SealSeals)
			if got, err := f.Seals(); got != c.seals|fs.SealSeals || err != nil {
				t.Errorf("seals %#x, %v", got, err)
			}
			if err := f.AddSeals(fs.SealGrow); err != linux.EPERM {
				t.Errorf("one seal more: %v", err)
			}
		})
	}
}

// A file with a name has only F_SEAL_SEAL, so that no seal can be added.
func TestSealsOfNamed(t *testing.T) {
	v := newView(memfs.Config{})
	f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := f.Seals(); got != fs.SealSeals || err != nil {
		t.Errorf("seals %#x, %v", got, err)
	}
	if err := f.AddSeals(fs.SealWrite); err != linux.EPERM {
		t.Errorf("a seal: %v", err)
	}
	if err := f.AddSeals(1 << 10); err != linux.EINVAL {
		t.Errorf("a seal that is unknown: %v", err)
	}
}
