package media

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// applications returns the tests' applications. The sizes are at bounds of a sector and of the number of clusters.
var applications = sync.OnceValue(func() map[string][]byte {
	random := make([]byte, 3e6+1)
	rand.NewChaCha8([32]byte{1}).Read(random)
	large := make([]byte, fatMost*sector+1)
	copy(large[len(large)-1e5:], random)
	return map[string][]byte{
		"1 byte":                random[:1],
		"a sector":              random[:sector],
		"3 MB":                  random,
		"clusters of 2 sectors": large,
	}
})

// written returns the path of an image.
func written(t *testing.T, format string, application []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image."+format)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("content that is replaced")
	if err := errors.Join(Write(f, format, application), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// tool runs a program, or skips the test if the program is not installed.
func tool(t *testing.T, pkg, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s: apt-get install %s", name, pkg)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "MTOOLS_SKIP_CHECK=1", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, out)
	}
	return string(out)
}

// volume writes the file system of an image to a file of its own, and returns the path.
func volume(t *testing.T, application []byte) string {
	t.Helper()
	m, err := fat(application)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "volume")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(m.size); err != nil {
		t.Fatal(err)
	}
	for _, e := range m.extents {
		if _, err := f.WriteAt(e.data, e.at); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// fsck.fat finds no error in the file system, and the mtools read the application from it.
func TestFAT(t *testing.T) {
	for name, application := range applications() {
		path := volume(t, application)
		if out := tool(t, "dosfstools", "fsck.fat", "-n", "-v", path); !strings.Contains(out, "16 bits per FAT") && !strings.Contains(out, "16 bit entries") {
			t.Errorf("%s: %s", name, out)
		}
		copied := filepath.Join(t.TempDir(), "copy")
		tool(t, "mtools", "mcopy", "-i", path, "::/EFI/BOOT/BOOTX64.EFI", copied)
		if got, err := os.ReadFile(copied); err != nil || !bytes.Equal(got, application) {
			t.Errorf("%s: %v; %d bytes", name, err, len(got))
		}
	}
}

// sgdisk accepts the partition table, and finds an EFI system partition that starts with the file system.
func TestGPT(t *testing.T) {
	for name, application := range applications() {
		path := written(t, Raw, application)
		if out := tool(t, "gdisk", "sgdisk", "--verify", path); !strings.Contains(out, "No problems found") || strings.Contains(out, "Caution") {
			t.Errorf("%s: %s", name, out)
		}
		if out := tool(t, "gdisk", "sgdisk", "--info=1", path); !strings.Contains(out, "EFI system partition") || !strings.Contains(out, "First sector: 2048 ") {
			t.Errorf("%s: %s", name, out)
		}
		disk, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(disk)%mebibyte != 0 {
			t.Errorf("%s: %d bytes", name, len(disk))
		}
		part, err := os.ReadFile(volume(t, application))
		if err != nil || !bytes.HasPrefix(disk[mebibyte:], part) {
			t.Errorf("%s: %v; the partition is not the file system", name, err)
		}
	}
}

// Parts of a raw disk without content are holes of the file.
func TestSparse(t *testing.T) {
	st, err := os.Stat(written(t, Raw, []byte("small")))
	if err != nil {
		t.Fatal(err)
	}
	if used := st.Sys().(*syscall.Stat_t).Blocks * 512; used > st.Size()/4 {
		t.Errorf("%d of %d bytes have blocks", used, st.Size())
	}
}

// qemu-img finds no error in the qcow2 file, and the same content as in the raw disk.
func TestQCOW2(t *testing.T) {
	for name, application := range applications() {
		path := written(t, QCOW2, application)
		if out := tool(t, "qemu-utils", "qemu-img", "check", path); !strings.Contains(out, "No errors were found on the image.") {
			t.Errorf("%s: %s", name, out)
		}
		if out := tool(t, "qemu-utils", "qemu-img", "compare", "-f", "raw", "-F", "qcow2", written(t, Raw, application), path); !strings.Contains(out, "Images are identical.") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// A disk of several GiB has several second-level tables and several blocks of reference counts.
func TestLargeQCOW2(t *testing.T) {
	disk := &image{size: 6 << 30}
	want := make([]byte, 5*qcowCluster/2)
	rand.NewChaCha8([32]byte{2}).Read(want)
	places := []int64{0, 512<<20 - qcowCluster, 1<<30 + sector, 6<<30 - int64(len(want))}
	for _, at := range places {
		disk.add(at, want)
	}
	dir := t.TempDir()
	for name, m := range map[string]*image{"raw": disk, "qcow2": qcow2(disk)} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(m.size); err != nil {
			t.Fatal(err)
		}
		for _, e := range m.extents {
			if _, err := f.WriteAt(e.data, e.at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if out := tool(t, "qemu-utils", "qemu-img", "check", filepath.Join(dir, "qcow2")); !strings.Contains(out, "No errors were found on the image.") {
		t.Error(out)
	}
	if out := tool(t, "qemu-utils", "qemu-img", "compare", "-f", "raw", "-F", "qcow2", filepath.Join(dir, "raw"), filepath.Join(dir, "qcow2")); !strings.Contains(out, "Images are identical.") {
		t.Error(out)
	}
}

// xorriso finds the boot catalog, and extracts the file system.
func TestISO(t *testing.T) {
	for name, application := range applications() {
		path := written(t, ISO, application)
		out := tool(t, "xorriso", "xorriso", "-indev", path, "-report_el_torito", "plain")
		if !strings.Contains(out, "El Torito img path :   1  /EFI.IMG") || !strings.Contains(out, "1  UEFI  y   none") {
			t.Errorf("%s: %s", name, out)
		}
		copied := filepath.Join(t.TempDir(), "copy")
		tool(t, "xorriso", "xorriso", "-osirrox", "on", "-indev", path, "-extract", "/EFI.IMG", copied)
		got, err := os.ReadFile(copied)
		want, werr := os.ReadFile(volume(t, application))
		if err := errors.Join(err, werr); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v; the file is not the file system", name, err)
		}
	}
}

// The same application gives the same image, and another one other identifiers.
func TestReproducible(t *testing.T) {
	sum := func(format, application string) [32]byte {
		b, err := os.ReadFile(written(t, format, []byte(application)))
		if err != nil {
			t.Fatal(err)
		}
		return sha256.Sum256(b)
	}
	for _, format := range []string{Raw, QCOW2, ISO} {
		if first, second := sum(format, "a"), sum(format, "a"); first != second {
			t.Errorf("%s: two images of one application differ", format)
		}
	}
	if a, b := guid([]byte("a"), "disk"), guid([]byte("b"), "disk"); bytes.Equal(a, b) || bytes.Equal(a, guid([]byte("a"), "partition")) {
		t.Error("identifiers are equal")
	}
}

// An application that is too large, and an unknown format, are refused.
func TestRefuses(t *testing.T) {
	if _, err := fat(make([]byte, fatMost*64*sector)); !errors.Is(err, ErrTooLarge) { // the memory is never touched
		t.Errorf("2 GiB: %v", err)
	}
	if _, err := encode("vmdk", []byte("a")); err == nil {
		t.Error("an unknown format was written")
	}
}
