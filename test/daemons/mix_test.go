//go:build linux && !race

package daemons

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loam/exec/library"
)

const endOfRound = "\nend of the first round\n"

// hostPrograms are programs that every Debian system has. Without -daemons they are the only programs of the root folder, and
// lines of mix.list that need others print on both systems that they are missing.
var hostPrograms = strings.Fields(`awk base64 bash cat chmod chown cksum cmp comm cp csplit cut dash date dd diff env expr factor
	false find fold grep gunzip gzip head id join ln ls md5sum mkdir mkfifo mktemp mv nice nl nohup od paste perl printf
	readlink realpath rm rmdir sed seq setsid sh sha1sum sha256sum shuf sleep sort split stat tail tar timeout touch tr true
	truncate tsort wc xargs yes`)

// A hundred short commands run four at a time in a random order, again and again. Each prints what it prints on Linux, and
// ends with the same status, in the first round and in all others.
func TestMix(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: the commands run on Linux in namespaces of their own")
	}
	var root string
	if *run {
		root = image(t)
	} else {
		root = hostRoot(t)
	}
	scripts, loam := scriptFolder(t), buildLoam(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	onLinux, _ := mixed(t, linuxCommand(ctx, root, scripts, "mix", 0))
	onLoam, rest := mixed(t, onLoam(ctx, loam, changeable(t, root), scripts, "mix", *seconds))
	t.Logf("%s", rest)
	if len(onLinux) != len(onLoam) {
		t.Fatalf("%d commands on Loam, %d on Linux", len(onLoam), len(onLinux))
	}
	for i, want := range onLinux {
		if onLoam[i] != want {
			t.Errorf("on Loam: command %s\non Linux: command %s", onLoam[i], want)
		}
	}
}

// hostRoot creates a root folder with hostPrograms, their loader and their libraries.
func hostRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	put := func(path string, data []byte) {
		err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(root, path), data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	copied := func(path string) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		put(path, data)
	}
	for _, dir := range []string{"dev", "proc", "tmp", "root"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("usr/bin", filepath.Join(root, "bin")); err != nil {
		t.Fatal(err)
	}
	put("/etc/passwd", []byte("root:x:0:0:root:/root:/bin/bash\n"))
	put("/etc/group", []byte("root:x:0:\n"))
	for _, name := range []string{"hostname", "hosts", "nsswitch.conf", "protocols", "resolv.conf", "services"} {
		put("/etc/"+name, []byte("vm\n")) // Loam adds these files to a root folder without them
	}
	for _, name := range hostPrograms {
		path := filepath.Join("/usr/bin", name)
		copied(path)
		needs, err := library.Host{}.Find(path)
		if err != nil {
			continue // a script
		}
		copied(needs.Interp)
		for _, l := range needs.Libraries {
			copied(l.Path)
		}
	}
	return root
}

// mixed runs testdata/mix.sh. It returns the text of each command of the first round, and the text after this round.
func mixed(t *testing.T, cmd *exec.Cmd) (commands []string, rest string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	first, rest, ended := strings.Cut(string(out), endOfRound)
	if err != nil || !ended || strings.Contains(rest, "\nFAIL") || !strings.HasSuffix(rest, "\ndone\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.Split(first, "\ncommand ")[1:], rest
}
