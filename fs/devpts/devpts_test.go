package devpts

import (
	"slices"
	"testing"

	"loam/abi/linux"
	"loam/fs"
)

// A new terminal gets the lowest free number, and a file of that name in the directory. The file is removed when the
// terminal is closed.
func TestTerminals(t *testing.T) {
	f := New()
	for want := range 3 {
		number, node, err := f.Add(1000)
		if a := node.Attr(); number != want || err != nil || a.UID != 1000 || a.Device != DeviceOf(want) || a.Mode != fs.CharDevice|0o620 {
			t.Errorf("terminal %d: number %d, %+v, %v", want, number, a, err)
		}
	}
	f.Remove(1)
	var names []string
	f.Root().Read(0, func(e fs.Entry) bool { names = append(names, e.Name); return true })
	if want := []string{"ptmx", "0", "2"}; !slices.Equal(names, want) {
		t.Errorf("listed %q, want %q", names, want)
	}
	for _, name := range []string{"1", "00", "x", "-1"} {
		if _, err := f.Root().Lookup(name); err != linux.ENOENT {
			t.Errorf("%s: %v", name, err)
		}
	}
	node, err := f.Root().Lookup("2")
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Change(fs.Change{Fields: fs.SetMode | fs.SetOwner, Mode: 0o600, UID: 7}); err != nil {
		t.Error(err)
	}
	if a := node.Attr(); a.Mode != fs.CharDevice|0o600 || a.UID != 7 || a.GID != group {
		t.Errorf("%+v", a)
	}
	if number, _, _ := f.Add(0); number != 1 {
		t.Errorf("the free number is not used again: %d", number)
	}
}

func TestNumbers(t *testing.T) {
	for _, n := range []int{0, 1, perMajor - 1, perMajor, 3*perMajor + 7} {
		if got, ok := NumberOf(DeviceOf(n)); got != n || !ok {
			t.Errorf("%d becomes %d, %v", n, got, ok)
		}
	}
	if _, ok := NumberOf(fs.Device{Major: Terminal}); ok {
		t.Error("/dev/tty has the number of a terminal")
	}
}
