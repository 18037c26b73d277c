package results

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestFind(t *testing.T) {
	got := Find([]string{
		"-test.paniconexit0", "-test.timeout=10m0s", "-test.outputdir=/home/x", "-test.coverprofile=/tmp/b/_cover_.out",
		"-test.gocoverdir=/tmp/b/dir", "--test.cpuprofile=cpu.out", "-cpuprofile=mine", "-test.memprofile=",
	}, "/src")
	want := List{Files: []string{"/tmp/b/_cover_.out", "/home/x/cpu.out"}, Folders: []string{"/tmp/b/dir"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := Find([]string{"-test.trace=t"}, "/src"); got.Files[0] != "/src/t" {
		t.Errorf("%+v", got)
	}
}

// Only expected files are written. A truncated archive is not an error.
func TestReceive(t *testing.T) {
	dir := t.TempDir()
	wanted, other := filepath.Join(dir, "wanted"), filepath.Join(dir, "other")
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, name := range []string{other, wanted} {
		w.WriteHeader(&tar.Header{Name: name, Size: 4, Typeflag: tar.TypeReg})
		w.Write([]byte("data"))
	}
	w.Flush()
	if err := Receive(&archive, []string{wanted}); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(wanted); string(data) != "data" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("a file was written that nobody wants")
	}
}

// A program cannot exceed the limit with a file that is one large hole, which takes no bytes in the
// archive.
func TestReceiveHoles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "wanted")
	block := make([]byte, 512) // header of a sparse file, GNU tar format
	copy(block, name)
	copy(block[100:], "0000644\x000000000\x000000000\x0000000000000\x0000000000000\x00")
	block[156] = 'S'
	copy(block[257:], "ustar  \x00")
	copy(block[386:], "00000000000\x0000000000000\x00") // one region of 0 bytes at offset 0
	copy(block[483:], "77777777777\x00")                // the real size: 8 GiB
	sum := 8 * int(' ')
	for _, b := range block {
		sum += int(b)
	}
	copy(block[148:], fmt.Sprintf("%06o\x00 ", sum))
	archive := append(block, make([]byte, 1024)...)
	if err := Receive(bytes.NewReader(archive), []string{name}); !errors.Is(err, errTooMuch) {
		t.Error(err)
	}
	if st, err := os.Stat(name); err == nil {
		t.Errorf("%d bytes were written", st.Size())
	}
}
