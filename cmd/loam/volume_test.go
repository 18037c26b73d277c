//go:build !race

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A volume of -v takes the place of files that Loam itself would provide: files below /etc, the program's own file, and
// the folder in which it starts.
func TestVolumesTakePrecedence(t *testing.T) {
	main := program(t, `package main

import (
	"fmt"
	"os"
)

func main() {
	for _, name := range os.Args[1:] {
		b, err := os.ReadFile(name)
		fmt.Println(string(b), err)
	}
	fmt.Println(os.Getwd())
}
`)
	given := t.TempDir()
	for _, name := range []string{"hosts", "resolv.conf", "hostname"} {
		if err := os.WriteFile(filepath.Join(given, name), []byte("our "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const etc = "our hosts <nil>\nour resolv.conf <nil>\nour hostname <nil>\n"
	names := []string{"--", "/etc/hosts", "/etc/resolv.conf", "/etc/hostname"}
	loam := command(t)
	base := t.TempDir()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(base, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		about   string
		volumes []string
		args    []string
		want    string
	}{
		{"files", []string{given + "/hosts:/etc/hosts", given + "/resolv.conf:/etc/resolv.conf", given + "/hostname:/etc/hostname"},
			names, etc + work + " <nil>\n"},
		{"/etc", []string{given + ":/etc"}, names, etc + work + " <nil>\n"},
		{"the cache, where the program's file is", []string{given + ":" + cache}, []string{"--", cache + "/hosts"}, "our hosts <nil>\n" + work + " <nil>\n"},
		{"what the program's folder is in", []string{given + ":" + base}, []string{"--", base + "/hosts"}, "our hosts <nil>\n/ <nil>\n"},
		{"as docker run writes it", []string{given + ":/given:ro"}, []string{"--", "/given/hosts"}, "our hosts <nil>\n" + work + " <nil>\n"},
	} {
		args := []string{"run", "--platform", "process", "--net", "none"}
		for _, v := range c.volumes {
			args = append(args, "-v", v)
		}
		cmd := loam(append(append(args, main), c.args...)...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != c.want {
			t.Errorf("%s: %v, %q, want %q", c.about, err, out, c.want)
		}
	}
}
