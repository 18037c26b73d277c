package unikernel

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// The end of a file's name selects the format of the image, in upper or lower case. Other names get an ELF file.
func TestFormatOf(t *testing.T) {
	for name, want := range map[string]Format{
		"web": FormatELF, "web.elf": FormatELF, "web.bin": FormatELF, "img": FormatELF, "web.img.gz": FormatELF, "web.": FormatELF, "a.img/web": FormatELF,
		"web.efi": FormatEFI, "/boot/EFI/BOOT/BOOTX64.EFI": FormatEFI, "web.1.img": FormatRaw, "web.qcow2": FormatQCOW2, "WEB.Iso": FormatISO,
	} {
		if got := FormatOf(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// replaceFile replaces an existing file, also behind a symbolic link. If the content cannot be written, the incomplete file is
// removed,
// unless it is not a regular file.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("a longer text"), 0o600), os.Symlink("file", link)); err != nil {
		t.Fatal(err)
	}
	text := func(f *os.File) error { _, err := f.WriteString("text"); return err }
	if err := replaceFile(link, 0o755, text); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "text" {
		t.Errorf("%q, %v", b, err)
	}
	full := func(f *os.File) error { return errors.Join(text(f), syscall.ENOSPC) }
	for _, name := range []string{link, filepath.Join(dir, "new")} {
		if err := replaceFile(name, 0o755, full); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the incomplete file is left: %v", name, err)
		}
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := replaceFile(pipe, 0o755, full); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(pipe); err != nil {
		t.Errorf("a file that is not regular was removed: %v", err)
	}
}
