package ext4_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loam/block"
	"loam/block/memory"
	"loam/fs/ext4"
)

// Check finds each kind of damage that debugfs can make, and its message names the damaged inode or block.
func TestCheckFinds(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d", i)), []byte(strings.Repeat("x", 5000)), 0o644))
	}
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	for i := range 2000 {
		must(t, os.WriteFile(filepath.Join(dir, "sub", fmt.Sprintf("a name that is rather long, number %d", i)), nil, 0o644))
	}
	good := makeImage(t, "32M", "-d", dir)
	checkOurs(t, loadImage(t, good))
	data, err := os.ReadFile(good)
	must(t, err)
	for _, c := range []struct{ want, commands string }{
		{"it has 1 links, and counts 5", "set_inode_field file1 links_count 5"},
		{"sectors, and counts 16384", "set_inode_field file1 blocks 16384"},
		{"leads to inode 14, which is free", "freei <14>"},
		{"blocks are in use and marked as free", "freeb 4 1"},
		{"are marked as in use and belong to nothing", "setb 8100 3"},
		{"it is in no directory", "unlink file7"},
		{"it has type 1, and its inode 0|its type is unknown", "set_inode_field file1 mode 0"},
		{"has type 1, and its inode 2|it is damaged", "set_inode_field file1 mode 040755"},
		{"its descriptor counts 7", "set_bg 0 free_blocks_count 7\nset_bg 0 checksum calc"},
		{"its descriptor counts 99", "set_bg 0 used_dirs_count 99\nset_bg 0 checksum calc"},
		{"is used by something else, too", "set_inode_field file1 block[5] 9"},
		{"marked as damaged", "set_super_value state 2"},
		{"the list of deleted files", "set_super_value last_orphan 5"},
	} {
		path := filepath.Join(t.TempDir(), "image")
		must(t, os.WriteFile(path, data, 0o600))
		commands := filepath.Join(t.TempDir(), "commands")
		must(t, os.WriteFile(commands, []byte(c.commands+"\n"), 0o600))
		if out, err := tool(t, "debugfs", "-w", "-f", commands, path); err != nil {
			t.Fatalf("%s: %v: %s", c.commands, err, out)
		}
		f, err := ext4.Check(loadImage(t, path))
		found := false
		for _, want := range strings.Split(c.want, "|") {
			found = found || strings.Contains(strings.Join(f.Problems, "\n"), want)
		}
		if err != nil || !found {
			t.Errorf("%s: %v, %q, want %q", c.commands, err, f.Problems, c.want)
		}
	}
}

// On randomly changed images, Check accepts every image that e2fsck accepts, and rejects nearly
// every image that e2fsck rejects. The exceptions are kinds of damage that do no harm.
func TestCheckAgrees(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 20
	}
	all := victims(t)
	rnd := rand.New(rand.NewPCG(12, 12))
	missed, damaged := 0, 0
	for round := range rounds {
		d := all[round%len(all)].Snapshot()
		image := d.Image()
		for range 3 {
			at := int64(1024 + rnd.IntN(len(image)/4))
			for image[at] == 0 {
				at = int64(1024 + rnd.IntN(len(image)/4))
			}
			alter(d, at&^1, uint16(rnd.Uint32()))
		}
		ours := checkProblems(d)
		path := saveImage(t, d)
		out, err := tool(t, "e2fsck", "-fn", path)
		os.Remove(path)
		switch {
		case err == nil && ours != "":
			t.Errorf("round %d: e2fsck finds nothing, and Check %s", round, ours)
		case err != nil:
			damaged++
			if ours == "" {
				missed++
				t.Logf("round %d: only e2fsck finds: %s", round, out)
			}
		}
	}
	t.Logf("%d of %d damaged images were missed", missed, damaged)
	if damaged == 0 || missed*5 > damaged {
		t.Errorf("%d of %d damaged images were missed", missed, damaged)
	}
}

// checkProblems returns the problems that Check finds; "" if there are none.
func checkProblems(d *memory.Device) string {
	f, err := ext4.Check(block.Device(d))
	if err != nil {
		return err.Error()
	}
	return strings.Join(f.Problems, "; ")
}
